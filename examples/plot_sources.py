"""
Kernels for each data source
============================

Samples are often described by several sources: images and spectra, genes and clinical records, sensors of several
makes. If you pool them into one table, a useless source drowns out the others. :func:`paretomkl.kernels.sources` gives
each source its own kernels, and the weights decide how much it counts.
"""

# %%
# Each handwritten digit is described in four ways: by the upper and the lower half of its image, by its spatial
# frequencies, and by 64 columns of noise. A frame keeps the column names.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from paretomkl import ParetoMKLClassifier, pareto_path
from paretomkl.kernels import sources
from paretomkl.plotting import KernelWeightsDisplay

images, y = load_digits(return_X_y=True)
images = images.reshape(-1, 8, 8)
blocks = {
    "upper": images[:, :4],
    "lower": images[:, 4:],
    "frequency": np.abs(np.fft.fft2(images)),
    "noise": np.random.default_rng(0).random(images.shape),
}
flat = {name: values.reshape(len(y), -1) for name, values in blocks.items()}
X = pd.concat(
    [pd.DataFrame(values, columns=[f"{name}_{k}" for k in range(values.shape[1])]) for name, values in flat.items()],
    axis=1,
)
X_train, X_test, y_train, y_test = train_test_split(X, y, train_size=200, stratify=y, random_state=0)
print({name: values.shape[1] for name, values in flat.items()})

# %%
# A pattern selects all columns whose names match. Each source gets eight kernels of the default bank, computed from
# its own columns. They share two distance matrices, so eight kernels cost little more than two.

kernels = sources({"upper": "upper_*", "lower": "lower_*", "frequency": "frequency_*", "noise": "noise_*"})
clf = ParetoMKLClassifier(C=10, kernels=kernels).fit(X_train, y_train)
print(len(clf.kernel_names_), "kernels:", *clf.kernel_names_[:3], "…")


def svc_score(columns):
    svc = make_pipeline(StandardScaler(), SVC(C=10)).fit(X_train[columns], y_train)
    return svc.score(X_test[columns], y_test)


scores = {f"{name} alone": svc_score([c for c in X if c.startswith(name)]) for name in blocks}
scores["all columns"] = svc_score(list(X))
scores["learned kernel"] = clf.score(X_test, y_test)
scores["all but noise"] = svc_score([c for c in X if not c.startswith("noise")])
for name, score in scores.items():
    print(f"{name:15} {score:.3f}")

# %%
# The gray bars are SVCs. The 45 tasks use the two halves of the image, some frequencies and no noise, and nobody had to
# say which source to leave out. The last score is what you get if you know that in advance.
#
# A source's share is the part of a prediction's variance that comes from its kernels: the sum of θ_m v_m over the
# source's kernels, divided by the sum over all kernels. You can't compare the weights θ themselves, because kernels
# have different scales. The right panel shows the shares along p: when only the hardest pairs decide, noise gets some
# weight.

for name, share in clf.source_shares_.items():
    print(f"{name:15} {share:.0%}")

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 3.8), layout="constrained")
left.barh(list(scores), list(scores.values()), color=["tab:gray"] * 5 + ["tab:blue", "lightgray"])
left.invert_yaxis()
left.set(xlabel="accuracy", title="200 digits for training", xlim=(0, 1.15))
left.bar_label(left.containers[0], fmt="%.3f", padding=3)
path = pareto_path(X_train, y_train, C=10, kernels=kernels)
KernelWeightsDisplay.from_path(path, by="source", ax=right)
right.set_title("What the kernel is made of")
plt.show()
