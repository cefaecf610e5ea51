"""
One kernel for each data source
===============================

Samples are often described by several sources: images and spectra, genes and clinical records, sensors of several
makes. Pooled into one table, a useless source drowns the others. A kernel for each source, restricted to its
``columns``, lets the weights decide how much each of them counts.
"""

# %%
# Each handwritten digit is described four times: by the upper and the lower half of its image, by its spatial
# frequencies, and by 64 columns of noise. A frame keeps the names of the columns.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC

from paretomkl import Gaussian, ParetoMKLClassifier

images, y = load_digits(return_X_y=True)
images = images.reshape(-1, 8, 8) / 16
frequencies = np.abs(np.fft.fft2(images))
sources = {
    "upper half": images[:, :4],
    "lower half": images[:, 4:],
    "frequencies": frequencies / frequencies.max(axis=0),
    "noise": np.random.default_rng(0).random(images.shape),
}
flat = {name: values.reshape(len(y), -1) for name, values in sources.items()}
X = pd.concat(
    [pd.DataFrame(values, columns=[f"{name} {k}" for k in range(values.shape[1])]) for name, values in flat.items()],
    axis=1,
)
columns = {name: [c for c in X if c.startswith(name)] for name in sources}
X_train, X_test, y_train, y_test = train_test_split(X, y, train_size=200, stratify=y, random_state=0)
print({name: len(names) for name, names in columns.items()})

# %%
# Three widths for each source make twelve kernels. Kernels of one source share its matrix of distances, so that the
# widths cost little.

kernels = [Gaussian(sigma, columns=names) for names in columns.values() for sigma in (0.5, 1.0, 2.0)]
clf = ParetoMKLClassifier(C=10, kernels=kernels).fit(X_train, y_train)

scores = {name: SVC(C=10).fit(X_train[c], y_train).score(X_test[c], y_test) for name, c in columns.items()}
scores["all columns"] = SVC(C=10).fit(X_train, y_train).score(X_test, y_test)
scores["learned kernel"] = clf.score(X_test, y_test)
useful = [c for c in X if c not in columns["noise"]]
scores["all but noise"] = SVC(C=10).fit(X_train[useful], y_train).score(X_test[useful], y_test)
for name, score in scores.items():
    print(f"{name:15} {score:.3f}")

# %%
# The share of each source in the kernel is the sum of the weights of its kernels. The 45 tasks want the two halves of
# the image and hardly any noise; nobody had to say which source to leave out. The last score is that of somebody who
# knew.

share = clf.theta_.reshape(len(columns), -1) / clf.theta_.sum()
for name, of_source in zip(columns, share.sum(axis=1), strict=True):
    print(f"{name:15} {of_source:.0%}")

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
colors = ["tab:gray"] * 5 + ["tab:blue", "lightgray"]
left.barh(list(scores), list(scores.values()), color=colors)
left.invert_yaxis()
left.set(xlabel="accuracy", title="200 digits to learn from")
left.bar_label(left.containers[0], fmt="%.3f", padding=3)
left.set_xlim(0, 1.15)

start = np.zeros(len(columns))
for k, sigma in enumerate((0.5, 1.0, 2.0)):
    right.barh(list(columns), share[:, k], left=start, color=plt.cm.Blues(0.4 + 0.25 * k), label=f"σ = {sigma}")
    start += share[:, k]
right.invert_yaxis()
right.set(xlabel="share of the kernel weights", title="What the kernel is made of")
right.legend()
plt.show()
