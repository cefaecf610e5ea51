"""
Which sharing fits?
===================

Tasks can have nothing in common, or they can share which sources matter (a kernel), part of how they matter (a
function), or everything. What they have in common decides which way to share is best. Here we know the truth: five
synthetic tasks with 24 samples each, on twelve sources of two columns, two of which matter to all tasks.
"""

# %%
# In :func:`paretomkl.datasets.make_multitask`, two parameters control what the tasks have in common. With
# ``relatedness=0``, each task depends on its own source; with ``relatedness=1``, all tasks depend on the same two
# sources, each in its own way, which a shared kernel can learn. From there, ``common=0`` to ``common=1`` makes the
# functions themselves the same. There is one Gaussian kernel per source. We fit all four ways on the same samples, and
# measure accuracy on others.

import matplotlib.pyplot as plt
import numpy as np

from paretomkl import Gaussian, ParetoMKLClassifier
from paretomkl.datasets import make_multitask

ways = ["nothing", "kernel", "function", "everything"]
steps = [0.0, 0.25, 0.5, 0.75, 1.0]
n_tasks, n_train, n_test, n_seeds = 5, 24, 200, 5
accuracy = {}
for name in ("relatedness", "common"):
    for value in steps:
        scores = np.zeros((n_seeds, len(ways)))
        for seed in range(n_seeds):
            made = make_multitask(
                n_tasks, n_train + n_test, n_sources=12, sigma=2.0, random_state=seed, **{name: value}
            )
            X, y, tasks = made.data, made.target, made.tasks
            train = np.concatenate([np.flatnonzero(tasks == t)[:n_train] for t in range(n_tasks)])
            test = np.setdiff1d(np.arange(len(y)), train)
            kernels = [Gaussian(2.0, columns=columns) for columns in made.columns]
            for k, way in enumerate(ways):
                model = ParetoMKLClassifier(share=way, kernels=kernels, C=3.0)
                model.fit(X[train], y[train], tasks=tasks[train])
                scores[seed, k] = model.score(X[test], y[test], tasks=tasks[test])
        accuracy[name, value] = scores
        best = ways[scores.mean(axis=0).argmax()]
        means = ", ".join(f"{way} {100 * mean:.1f}" for way, mean in zip(ways, scores.mean(axis=0), strict=True))
        print(f"{name} {value:<4}: {means}; best is {best}")

# %%
# From left to right the tasks have more in common, and sharing more helps. If each task has its own source, separate
# models find it, while a shared kernel has to include the sources of all tasks. If all tasks need the same two of
# twelve sources, five tasks find them sooner than one: a shared kernel gains 4 points over separate models. There,
# ``function`` does as well within the error of five seeds, because it can leave its common part at zero. It beats
# ``kernel`` when the functions are alike, clearly so from ``common=0.75``. A single function for all tasks wins if
# there is one; if the tasks have none in common, it is barely better than chance.
#
# The picture depends on the setting. With 30 samples and six sources, which a task can sort out by itself, a shared
# kernel and separate models are equal at ``relatedness=1``, and ``function`` is slightly ahead. C is fixed here.
#
# The bands are standard errors of the difference to the mean over the four ways, seed by seed: we know the differences
# between the ways more precisely than how hard the tasks of a seed are.

figure, axes = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained", sharey=True)
labels = {"relatedness": "relatedness (common = 0)", "common": "common (relatedness = 1)"}
titles = {"relatedness": "Do the same sources matter?", "common": "In the same way?"}
colors = dict(zip(ways, ["C6", "C0", "C5", "C2"], strict=True))
for ax, name in zip(axes, labels, strict=True):
    table = np.array([accuracy[name, value] for value in steps])  # (n_steps, n_seeds, n_ways)
    mean = 100 * table.mean(axis=1)
    error = 100 * (table - table.mean(axis=2, keepdims=True)).std(axis=1, ddof=1) / np.sqrt(n_seeds)
    for k, way in enumerate(ways):
        ax.plot(steps, mean[:, k], "o-", color=colors[way], label=way)
        ax.fill_between(steps, mean[:, k] - error[:, k], mean[:, k] + error[:, k], color=colors[way], alpha=0.15, lw=0)
    best = mean.argmax(axis=1)
    ax.scatter(steps, mean.max(axis=1), s=150, facecolor="none", edgecolor=[colors[ways[k]] for k in best], zorder=3)
    ax.set(xlabel=labels[name], title=titles[name], xticks=steps)
    ax.grid()
axes[0].set_ylabel("accuracy on other samples, %")
axes[1].legend(title="share (best: circled)", loc="lower right")
plt.show()

# %%
# You don't know in advance where your own data lie in this picture. ``ParetoMKLClassifierCV(share=["nothing", "kernel",
# "function", "everything"])`` finds out, with the same folds for all four (see the guide's page on sharing). On real
# data the answer may surprise you (:ref:`sphx_glr_auto_examples_plot_landmine.py`).
