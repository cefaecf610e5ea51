"""
Several tasks, few samples in each
==================================

Take eight machines with 25 labelled samples each, and six groups of sensors. The same groups matter for all machines,
but in different ways. A single machine has too few samples to find out which ones. Together they can: the tasks share
one kernel, and each keeps its own classifier.
"""

# %%
# The column that names the task
# ------------------------------
#
# The simplest way to say which row belongs to which task is a column of X. It isn't used as a feature, and it stays in
# place in everything that scikit-learn does with rows (splitting, shuffling, scoring).

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

from paretomkl import Gaussian, ParetoMKLClassifier
from paretomkl.datasets import make_multitask

made = make_multitask(n_tasks=8, n_samples=325, sigma=2.0, random_state=3)
X = pd.DataFrame(made.data, columns=[f"sensor {k}" for k in range(made.data.shape[1])])
X["machine"] = np.char.add("machine ", made.tasks.astype(str))
y = np.where(made.target == 1, "worn", "fine")
cells = X["machine"] + y  # to keep the labels of each machine in proportion
X_train, X_test, y_train, y_test = train_test_split(X, y, train_size=8 * 25, stratify=cells, random_state=0)
print(X_train.iloc[:3, -3:])

# %%
# We use one kernel per group of sensors; each group has two columns.

groups = [[X.columns[k] for k in columns] for columns in made.columns]
kernels = [Gaussian(2.0, columns=group) for group in groups]
shared = ParetoMKLClassifier(C=3, kernels=kernels, task_column="machine").fit(X_train, y_train)
print(shared.task_names_)
print("weights of the groups:", shared.theta_.round(2), " groups that matter:", made.relevant)
print(f"accuracy, mean over the machines: {shared.score(X_test, y_test):.3f}")

# %%
# Other ways to specify the tasks
# -------------------------------
#
# If you can't put the task into X, pass ``tasks=`` to ``fit`` and to ``predict``. If each sample can have labels for
# several tasks, pass a matrix y with one column per task, and NaN where a label is missing. All three are the same
# problem.

features, machine = X_train.drop(columns="machine"), X_train["machine"]
by_tasks = ParetoMKLClassifier(C=3, kernels=kernels).fit(features, y_train, tasks=machine)
print("largest difference of the weights:", np.abs(by_tasks.theta_ - shared.theta_).max())

Y = pd.DataFrame({name: np.where(machine == name, y_train == "worn", np.nan) for name in shared.task_names_})
by_matrix = ParetoMKLClassifier(C=3, kernels=kernels).fit(features, Y)
print("largest difference of the weights:", np.abs(by_matrix.theta_ - shared.theta_).max())

# %%
# Shared or separate
# ------------------
#
# We compare the shared kernel with a kernel learned for each machine alone, with equal weights for all kernels
# (``s=inf``), and with all machines treated as one.

alike = ParetoMKLClassifier(C=3, kernels=kernels, task_column="machine", s=np.inf).fit(X_train, y_train)
pooled = ParetoMKLClassifier(C=3, kernels=kernels).fit(features, y_train)
alone, rows = {}, []
for name in shared.task_names_:
    mine, test = machine == name, X_test["machine"] == name
    alone[name] = ParetoMKLClassifier(C=3, kernels=kernels).fit(features[mine], y_train[mine])
    X_mine, y_mine = X_test[test], y_test[test]
    X_alone = X_mine.drop(columns="machine")
    rows.append(
        {
            "shared": shared.score(X_mine, y_mine),
            "separate": alone[name].score(X_alone, y_mine),
            "equal weights": alike.score(X_mine, y_mine),
            "one task": pooled.score(X_alone, y_mine),
        }
    )
scores = pd.DataFrame(rows, index=shared.task_names_)
print(scores.mean().round(3).to_string())

# %%
# Accuracies are on the left, weights on the right. Each machine alone finds patterns in the noise; together they find
# the two groups that matter.

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
for k, name in enumerate(scores):
    column = scores[name]
    left.plot(np.full(len(column), k), column, "o", color="C0" if k == 0 else "C6", alpha=0.5)
    left.plot([k - 0.25, k + 0.25], [column.mean()] * 2, color="black")
left.set_xticks(range(scores.shape[1]), scores.columns)
left.set(ylabel="accuracy on 300 new samples", title="One dot per machine, a line for their mean")

weights = np.array([shared.theta_, *(model.theta_ for model in alone.values())])
image = right.imshow(weights, cmap="Blues", vmin=0, vmax=1, aspect="auto")
right.set_yticks(range(9), ["shared", *alone])
right.set_xticks(range(6), [f"{k}*" if k in made.relevant else str(k) for k in range(6)])
right.axhline(0.5, color="black")
right.set(xlabel="group of sensors (* matters)", title="Kernel weights")
figure.colorbar(image, ax=right)
plt.show()
