"""
Landmines in 29 fields
======================

Is a radar echo a landmine or clutter? There are 29 fields, with few mines in each. Does each field need its own
classifier? Fifteen fields are overgrown and the others are bare earth, so the same echo can mean different things. But
a field can't learn much on its own from ten echoes.

The data are not part of the library: :func:`paretomkl.datasets.fetch` reads them from the folder named by the
environment variable ``PARETOMKL_DATA``, or downloads them if you installed the extra ``data``.
"""

# %%
# As in the literature, we use all mines in a field and equally many other echoes, drawn at random: 30 to 96 per field.
# We train on a fifth of them, or on half, and test on all others.

import warnings

import matplotlib.pyplot as plt
import numpy as np

from paretomkl import ParetoMKLClassifierCV
from paretomkl.datasets import fetch
from paretomkl.model_selection import MultiTaskStratifiedKFold

landmine = fetch("landmine")
rng = np.random.default_rng(0)
rows = []
for field in np.unique(landmine.tasks):
    of_field = landmine.tasks == field
    mines, others = np.flatnonzero(of_field & (landmine.target == 1)), np.flatnonzero(of_field & (landmine.target == 0))
    rows += [mines, rng.choice(others, len(mines), replace=False)]
rows = np.concatenate(rows)
X, y, field = landmine.data[rows], landmine.target[rows], landmine.tasks[rows]
print(f"{len(y)} echoes of {len(np.unique(field))} fields")

# %%
# One search fits all four ways to share on the same folds of the training set: ``nothing``, the ``kernel``, part of
# the ``function``, ``everything``. We record what it finds there, and how each way does on the held-out echoes.

warnings.filterwarnings("ignore", message="The chosen C=")  # some searches reach an edge of this short grid
warnings.filterwarnings("ignore", message="Task .* was not seen")  # one field is left out on purpose
ways = ["nothing", "kernel", "function", "everything"]
n_splits, fractions = 2, (0.2, 0.5)
accuracy = {fraction: np.zeros((n_splits, len(ways))) for fraction in fractions}
chosen = {}
for fraction in fractions:
    parts = MultiTaskStratifiedKFold(round(1 / fraction), shuffle=True, random_state=0).split(X, y, tasks=field)
    for k, (test, train) in zip(range(n_splits), parts, strict=False):  # train on one part, test on the others
        search = ParetoMKLClassifierCV(share=ways, ps=1.0, Cs=[1.0, 10.0, 100.0], s=1.1, capacity=1.0, cv=3)
        search.fit(X[train], y[train], tasks=field[train])
        for w, way in enumerate(ways):
            model = search.estimator_at(search.best_indices_[way]).fit(X[train], y[train], tasks=field[train])
            accuracy[fraction][k, w] = model.score(X[test], y[test], tasks=field[test])
        chosen[fraction, k] = search
        own = accuracy[fraction][k, ways.index(search.best_share_)]
        print(f"{fraction:.0%} for training: {search.sharing_in_words_} On other echoes {own:.1%}.")

# %%
# Separate functions with a shared kernel aren't enough here. A common function, or one function for all fields, is
# better by two to six points, and the search finds this out without seeing the held-out echoes. There is almost no
# difference between these two. Two splits are few, and the splits with a fifth and with a half are tested on different
# echoes.

figure, ax = plt.subplots(figsize=(9, 4.2), layout="constrained")
place = np.arange(len(ways))
for k, fraction in enumerate(fractions):
    mean = 100 * accuracy[fraction].mean(axis=0)
    bars = ax.bar(place + 0.38 * (k - 0.5), mean, 0.36, color=["C4", "C0"][k], label=f"{fraction:.0%} of each")
    ax.bar_label(bars, [f"{value:.1f}" for value in mean], padding=2, fontsize=9)
    for split in range(n_splits):
        w = ways.index(chosen[fraction, split].best_share_)
        ax.plot(w + 0.38 * (k - 0.5), 52 + 1.2 * split, "k*")
ax.set_xticks(place, ways)
ax.set(
    ylim=(50, None),
    ylabel="accuracy on other echoes, % (guessing: 50)",
    xlabel="what the fields share",
    title="Landmine, 29 fields (stars: what the folds chose)",
)
figure.legend(title="training set", loc="outside right upper")
plt.show()
# sphinx_gallery_thumbnail_path = 'stored/landmine-1.png'

# %%
# For a new field, the model uses the common part of the function, or with ``everything`` the model for all fields. Here
# the first field plays the new one.

new = field == field.min()
model = chosen[0.2, 1].estimator_at(chosen[0.2, 1].best_indices_["function"])
model.fit(X[~new], y[~new], tasks=field[~new])
score = model.score(X[new], y[new], tasks=field[new])
print(f"{model.common_share_:.1%} of the function is common; accuracy in the new field {score:.1%}")
