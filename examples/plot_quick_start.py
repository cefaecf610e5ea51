"""
Quick start: a kernel that need not be tuned
============================================

A support vector machine stands or falls with the width of its kernel. Here 100 handwritten digits are learned from:
once by :class:`sklearn.svm.SVC` for each of many widths, and once by :class:`paretomkl.ParetoMKLClassifier`, which is
given eleven kernels and learns what to make of them.
"""

# %%
# Ten classes are 45 tasks, one for each pair of digits, and all of them share one kernel. The default kernels (linear,
# quadratic, and Gaussians of nine widths) suit features between 0 and 1.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC

from paretomkl import ParetoMKLClassifier

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16, y, train_size=100, stratify=y, random_state=0)

clf = ParetoMKLClassifier(C=10).fit(X_train, y_train)
print(f"{len(clf.task_names_)} tasks, {len(clf.kernel_names_)} kernels, {clf.n_sweeps_} sweeps over the tasks")
print(f"certified relative gap {clf.gap_:.0e}, accuracy {clf.score(X_test, y_test):.3f}")

# %%
# The gap is a certificate: no other weights of these kernels make the average objective of the tasks smaller by a
# larger fraction. Now the same with one Gaussian kernel of each width in turn.

sigmas = np.geomspace(0.2, 20, 13)
accuracies = [SVC(C=10, gamma=0.5 / sigma**2).fit(X_train, y_train).score(X_test, y_test) for sigma in sigmas]
for sigma, accuracy in zip(sigmas, accuracies, strict=True):
    print(f"SVC with sigma = {sigma:6.2f}: {accuracy:.3f}")

# %%
# The learned kernel comes close to the best width without a search for it. Its weights, on the right, say what it is
# made of.

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
left.semilogx(sigmas, accuracies, "o-", color="tab:gray", label="SVC, one width")
left.axhline(clf.score(X_test, y_test), color="tab:blue", label="learned kernel")
left.set(xlabel="width σ of the kernel of the SVC", ylabel="accuracy on 1697 digits", title="Digits, 100 to learn from")
left.legend(loc="lower right")

right.barh(clf.kernel_names_, clf.theta_, color="tab:blue")
right.invert_yaxis()
right.set(xlabel="weight θ", title="What the kernel is made of")
plt.show()
