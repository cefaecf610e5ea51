"""
Six sources, few samples
========================

This data set has 2000 handwritten digits, described in six ways: Fourier coefficients of the shape (fou), profile
correlations (fac), Karhunen-Loeve coefficients (kar), pixels (pix), Zernike moments (zer) and morphological features
(mor). What should you do with 649 columns if you have 5, 10 or 30 samples of each digit for training? Use the best
source, put all columns into one SVM, or give each source its own kernels?

The data are not part of the library: :func:`paretomkl.datasets.fetch` reads them from the folder named by the
environment variable ``PARETOMKL_DATA``, or downloads them if you installed the extra ``data``.
"""

# %%
# ``fetch`` lists the columns of each source, and :func:`paretomkl.kernels.sources` makes a default bank for each: 6
# times 7 kernels. We don't scale the columns. The six sources differ in size and in scale.

import warnings
from collections import defaultdict

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import GridSearchCV, StratifiedKFold, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from paretomkl import ParetoMKLClassifierCV
from paretomkl.datasets import fetch
from paretomkl.kernels import sources

mfeat = fetch("mfeat")
X, y = mfeat.data, mfeat.target
for name, columns in mfeat.sources.items():
    print(f"{name}: {len(columns):3} columns, typical size {np.abs(X[:, columns]).mean():8.3g}")

# %%
# We compare four ways, each with its parameters chosen by cross-validation on the training samples: a single source;
# scikit-learn's SVC on all columns, standardised, including its width; all sources with equal weights for all kernels
# (``s=inf``); and all sources with learned weights. The exponent p stays at 1, the average of the 45 tasks.

Cs = 10.0 ** np.arange(-3, 4)
warnings.filterwarnings("ignore", message="The chosen C=")  # a few of the 72 searches reach an edge of this grid
bank = sources(mfeat.sources)
gammas = 2.0 ** np.arange(-4, 3) / X.shape[1]
folds = StratifiedKFold(3, shuffle=True, random_state=0)
methods = {
    **{name: ParetoMKLClassifierCV(ps=1, Cs=Cs, cv=3) for name in mfeat.sources},
    "SVC, all columns": GridSearchCV(
        make_pipeline(StandardScaler(), SVC()), {"svc__C": Cs, "svc__gamma": gammas}, cv=folds
    ),
    "sources, uniform": ParetoMKLClassifierCV(ps=1, Cs=Cs, s=np.inf, kernels=bank, cv=3),
    "sources, learned": ParetoMKLClassifierCV(ps=1, Cs=Cs, kernels=bank, cv=3),
}

n_splits, per_class = 3, (5, 10, 30)
accuracy = defaultdict(list)
shares = defaultdict(list)
for n in per_class:
    for seed in range(n_splits):
        X_train, X_test, y_train, y_test = train_test_split(X, y, train_size=10 * n, stratify=y, random_state=seed)
        for name, method in methods.items():
            columns = mfeat.sources.get(name, slice(None))
            method.fit(X_train[:, columns], y_train)
            accuracy[n, name].append(method.score(X_test[:, columns], y_test))
        shares[n].append(list(methods["sources, learned"].source_shares_.values()))

# %%
# This is the accuracy on all other digits: the mean over the splits with its standard error.

print(" " * 18 + "".join(f"{n:>10} per class" for n in per_class))
for name in methods:
    scores = [100 * np.array(accuracy[n, name]) for n in per_class]
    print(f"{name:18}" + "".join(f"{s.mean():13.1f} ± {s.std(ddof=1) / np.sqrt(len(s)):.1f} " for s in scores))

# %%
# With 5 and 10 samples of each digit, keeping the sources apart beats one SVM on all columns: fac and pix have 456 of
# the 649 columns, so they dominate every distance in the pooled table. With 30 samples, all ways that use all sources
# are about equally good. No source is useless here, so learned weights are no better than uniform ones. If some sources
# are useless, learning helps (:ref:`sphx_glr_auto_examples_plot_sources.py`). Three splits are few; the guide's page on
# kernels has figures from twenty.
#
# The right panel shows what the learned kernel is made of: the share of each source in a prediction's variance. It does
# not show which sources are needed; :func:`paretomkl.inspection.importance` measures that.

figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.4), layout="constrained", width_ratios=[1.4, 1])
place, shades = np.arange(len(methods)), ["C4", "C0", "black"]
for n, shade in zip(per_class, shades, strict=True):
    mean = [np.mean(accuracy[n, name]) for name in methods]
    left.plot(mean, place, "o", color=shade, label=f"{n} per class")
left.set_yticks(place, list(methods))
left.invert_yaxis()
left.set(xlim=(0.5, 1), xlabel="accuracy on the other digits", title="New digits")
left.grid()
left.legend(title="training set", loc="upper left")

rows = np.arange(len(mfeat.sources))
for k, (n, shade) in enumerate(zip(per_class, shades, strict=True)):
    right.barh(rows + 0.27 * (k - 1), np.mean(shares[n], axis=0), height=0.27, color=shade)
right.set_yticks(rows, list(mfeat.sources))
right.invert_yaxis()
right.set(xlabel="share of the variance of predictions", title="What the kernel is made of")
plt.show()
# sphinx_gallery_thumbnail_path = 'stored/mfeat-1.png'
