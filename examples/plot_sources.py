"""
Kernels for each data source
============================

Samples are often described by several sources: images and spectra, genes and clinical records, sensors of several
makes. If you pool them into one table, a useless source drowns out the others. :func:`paretomkl.kernels.sources` gives
each source its own kernels, whose weights are learned. What the kernel is made of and which sources the model needs are
two questions; this example answers both.
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

from paretomkl import ParetoMKLClassifierCV
from paretomkl.inspection import importance
from paretomkl.kernels import sources

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
# A pattern selects all columns whose names match. Each source gets seven kernels of its own, computed from its
# columns. They share two distance matrices, so seven kernels cost little more than two.

kernels = sources({"upper": "upper_*", "lower": "lower_*", "frequency": "frequency_*", "noise": "noise_*"})
search = ParetoMKLClassifierCV(ps=1.0, kernels=kernels).fit(X_train, y_train)
print(len(search.kernel_names_), "kernels:", *search.kernel_names_[:3], "…")


def svc_score(columns):
    svc = make_pipeline(StandardScaler(), SVC(C=10)).fit(X_train[columns], y_train)
    return svc.score(X_test[columns], y_test)


scores = {f"{name} alone": svc_score([c for c in X if c.startswith(name)]) for name in blocks}
scores["all columns"] = svc_score(list(X))
scores["learned kernel"] = search.score(X_test, y_test)
scores["all but noise"] = svc_score([c for c in X if not c.startswith("noise")])
for name, score in scores.items():
    print(f"{name:15} {score:.3f}")

# %%
# The gray bars are SVCs. The learned kernel is ahead of an SVC on all columns, and nobody had to say which source to
# leave out. The last score is what an SVC gets if you know that in advance.

plt.figure(figsize=(7, 3.6), layout="constrained")
bars = plt.barh(list(scores), list(scores.values()), color=["C6"] * 5 + ["C0", "0.8"])
plt.gca().invert_yaxis()
plt.bar_label(bars, fmt="%.3f", padding=3)
plt.xlim(0, 1)
plt.xlabel("accuracy on new digits")
plt.title("200 digits for training")

# %%
# A source's *share* is the part of a prediction's variance that comes from its kernels: the sum of θ_m v_m over the
# source's kernels, divided by the sum over all kernels; ± is its standard deviation over the folds of the search. It
# says what the kernel is made of, and noise can have a large share, since 64 columns of noise fit any labels of 160
# samples.

for name, share in search.source_shares_.items():
    print(f"{name:15} {share:.0%} ± {100 * search.source_shares_std_[name]:.0f} of the kernel")

# %%
# An *importance* is measured on digits that a model has not seen. :func:`~paretomkl.inspection.importance` fits the
# folds of the search again and exchanges the columns of one source among the held-out digits: what does the model lose
# if that source says nothing? Each loss has an interval. Noise has a share but no importance.

relies_on = importance(search, X_train, y_train)
print(relies_on)
display = relies_on.plot()
display.figure_.set_size_inches(9, 3)

# %%
# A source can also be left out of the learning: what do you lose if you stop measuring it? That is much less, because
# the others stand in for it. The frequencies are computed from the same image as the halves. So a small importance does
# not say that a source is useless, only that it is not needed beside the others.

print(importance(search, X_train, y_train, measure="leave-out"))
plt.show()
