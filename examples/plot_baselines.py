"""
Every method on one data set
============================

Take six machines with 40 labelled samples each. Two of eight groups of sensors matter, the same two for all machines,
and 30 % of one machine's labels are flipped. We fit every method of the library, choose its parameters by
cross-validation on the training samples, and score it task by task on held-out samples.
"""

# %%
# The methods have the same interface, so one loop handles all of them. Kernel methods get one Gaussian kernel per group
# of sensors; the two linear methods get the sensors themselves.

from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import GridSearchCV, train_test_split

from paretomkl import Gaussian, ParetoMKLClassifier, ParetoMKLClassifierCV
from paretomkl.baselines import (
    IndependentMKL,
    MinimaxMTL,
    PartiallySharedMKL,
    SparseMTL,
    UniformKernelSVC,
)
from paretomkl.datasets import make_multitask
from paretomkl.model_selection import MultiTaskStratifiedKFold, make_multitask_scorer

made = make_multitask(
    n_tasks=6, n_samples=340, n_sources=8, n_relevant=2, noise=[0, 0, 0, 0, 0, 0.3], sigma=2.0, random_state=1
)
X = np.column_stack([made.data, made.tasks])  # the last column names the task
kernels = [Gaussian(2.0, columns=list(group)) for group in made.columns]
X_train, X_test, y_train, y_test = train_test_split(
    X, made.target, train_size=6 * 40, stratify=2 * made.tasks + (made.target > 0), random_state=1
)

common = {"task_column": -1}
Cs = [0.3, 1.0, 3.0, 10.0]
folds = MultiTaskStratifiedKFold(3, task_column=-1)


def chosen(estimator, **grid):
    return GridSearchCV(estimator, grid, cv=folds)


methods = {
    "Pareto path, p, C and s by\ncross-validation": ParetoMKLClassifierCV(Cs=Cs, kernels=kernels, cv=3, **common),
    "average (p = 1)": chosen(ParetoMKLClassifier(kernels=kernels, **common), C=Cs),
    "largest objective (p = ∞)": chosen(ParetoMKLClassifier(p=np.inf, kernels=kernels, **common), C=Cs),
    "PartiallySharedMKL": chosen(PartiallySharedMKL(kernels=kernels, **common), C=Cs, beta=[0.5, 2.0]),
    "SparseMTL": chosen(SparseMTL(kernels=kernels, **common), C=Cs, q=[1.0, 2.0]),
    "IndependentMKL": chosen(IndependentMKL(kernels=kernels, **common), C=Cs),
    "UniformKernelSVC": chosen(UniformKernelSVC(kernels=kernels, **common), C=Cs),
    "MinimaxMTL, trace norm": chosen(MinimaxMTL("trace", **common), mu=[0.003, 0.01, 0.03]),
    "MinimaxMTL, common part": chosen(MinimaxMTL("ep", **common), mu=[0.003, 0.01, 0.03]),
}

# %%
# This prints the held-out accuracy of each method, and the seconds that it took including cross-validation.

each_task = make_multitask_scorer("accuracy", average=None, task_column=-1)
accuracy, seconds = {}, {}
for name, method in methods.items():
    began = perf_counter()
    method.fit(X_train, y_train)
    seconds[name] = perf_counter() - began
    scores = each_task(method, X_test, y_test)
    accuracy[name] = np.array([scores[machine] for machine in sorted(scores)])
    short = name.replace("\n", " ")
    print(f"{short:42} mean {accuracy[name].mean():.3f}  worst {accuracy[name].min():.3f}  {seconds[name]:5.2f} s")

# %%
# A line follows each machine from method to method, and bars are the means over the machines. The methods that learn
# from all machines together which groups matter do best here. The linear methods can't handle labels that no line
# separates. No method can be good on the noisy machine.

fig, ax = plt.subplots(figsize=(8, 4.8), layout="constrained")
names = sorted(accuracy, key=lambda name: accuracy[name].mean())
table, rows = np.array([accuracy[name] for name in names]), np.arange(len(names))
for t, marker in enumerate("osD^vP"):
    label = f"machine {t}" + " (noisy)" * (t == 5)
    ax.plot(table[:, t], rows, marker=marker, color=f"C{t}", linewidth=0.7, alpha=0.8, label=label)
ax.barh(rows, 0.004, 0.7, left=table.mean(axis=1) - 0.002, color="black", label="mean")
ax.set_yticks(rows, names)
ax.set_xlabel("held-out accuracy")
ax.grid(axis="x")
ax.legend(loc="center left", bbox_to_anchor=(1, 0.5))
plt.show()
