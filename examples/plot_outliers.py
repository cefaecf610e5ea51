"""
Outliers in several tasks
=========================

Three machines each run in their own way, and at a few moments something is wrong. Nobody has labelled those moments.
:class:`~paretomkl.ParetoMKLOutlierDetector` learns what is normal for each machine, with a separate threshold for each,
while the machines share the weights of the sources. The second half shows what you can't learn without labels: the
width of a kernel.
"""

# %%
# What is normal
# --------------
#
# There are two sources, sound and heat, with two columns each. In the plane of the sound columns, each machine runs
# along its own curve, and the third machine scatters more than the others. One moment in twenty is wrong: off the
# curve, or too hot.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import roc_auc_score
from sklearn.svm import OneClassSVM

from paretomkl import Gaussian, ParetoMKLOutlierDetector, pareto_path
from paretomkl.kernels import sources

rng = np.random.default_rng(0)
names, n = np.array(["fan", "pump", "mill"]), 200
X, wrong = [], []
for turn, scatter in ((0.0, 0.1), (2.1, 0.1), (4.2, 0.25)):
    angle = turn + rng.uniform(0, 2.2, n)
    sound = np.column_stack([np.cos(angle), np.sin(angle)]) + scatter * rng.normal(size=(n, 2))
    heat = rng.normal(size=(n, 2))
    bad = rng.random(n) < 0.05
    sound[bad] = rng.uniform(-1.6, 1.6, size=(bad.sum(), 2))
    heat[bad] += rng.choice([-2, 2], size=(bad.sum(), 1))
    X.append(np.hstack([sound, heat]))
    wrong.append(bad)
X, wrong, machine = np.vstack(X), np.concatenate(wrong), np.repeat(names, n)
print(f"{len(X)} moments, {wrong.sum()} of them wrong")

# %%
# Each machine is a task. We use one Gaussian per source and set the widths by hand, so that both kernels have about the
# same effective rank (the reason is below). ``kernels=sources({"sound": [0, 1], "heat": [2, 3]})`` would use the
# typical distance of each source over all machines, which is rather wide for the sound of a single machine.
#
# ``nu`` sets how many samples can lie outside while the functions are learned, and ``contamination`` sets the
# thresholds afterwards. Here the training samples include wrong moments; a large ν limits their influence. The area
# under the ROC curve shows how well a score ranks wrong moments first, machine by machine.


def area(score):
    return np.mean([roc_auc_score(wrong[machine == name], -score[machine == name]) for name in names])


kernels = [Gaussian(0.5, columns=[0, 1], source="sound"), Gaussian(1.5, columns=[2, 3], source="heat")]
given = {"kernels": kernels, "nu": 0.5, "contamination": 0.05}
detector = ParetoMKLOutlierDetector(**given).fit(X, tasks=machine)
ball = ParetoMKLOutlierDetector(method="svdd", **given).fit(X, tasks=machine)
strict = ParetoMKLOutlierDetector(kernels=kernels, contamination=0.05).fit(X, tasks=machine)
typical = ParetoMKLOutlierDetector(**given | {"kernels": sources({"sound": [0, 1], "heat": [2, 3]})})
typical.fit(X, tasks=machine)
pooled = ParetoMKLOutlierDetector(**given).fit(X)
plain = np.empty(len(X))
for name in names:
    plain[machine == name] = OneClassSVM(nu=0.5).fit(X[machine == name]).score_samples(X[machine == name])
scores = {
    "one-class, one task per machine": detector.score_samples(X, tasks=machine),
    "SVDD, one task per machine": ball.score_samples(X, tasks=machine),
    "one-class, ν = 0.05": strict.score_samples(X, tasks=machine),
    "one-class, default widths": typical.score_samples(X, tasks=machine),
    "one-class, all in one task": pooled.score_samples(X),
    "OneClassSVM on each machine": plain,
}
for name, score in scores.items():
    print(f"{name:32} area under the curve {area(score):.3f}")
ranks = dict(zip(detector.kernel_names_, detector.model_.bank.effective_rank.round(1).tolist(), strict=True))
print("effective ranks:", ranks)
print("shares of the sources:", {name: round(share, 2) for name, share in detector.source_shares_.items()})

# %%
# Each machine has its own threshold. A common threshold would flag more of the mill's moments, because it scatters
# more, and fewer of the others'.

score = scores["one-class, one task per machine"]
common = np.quantile(score, 0.05)
for t, name in enumerate(detector.task_names_):
    mine = machine == name
    own, shared = np.mean(score[mine] < detector.offset_[t]), np.mean(score[mine] < common)
    print(f"{name:5} threshold {detector.offset_[t]:6.3f}: {own:5.1%} outside; with a common threshold {shared:5.1%}")

side = np.linspace(-1.8, 1.8, 80)
plane = np.stack(np.meshgrid(side, side), axis=2).reshape(-1, 2)
figure, axes = plt.subplots(1, 3, figsize=(12, 4.2), layout="constrained", sharex=True, sharey=True)
for ax, name in zip(axes, names, strict=True):
    mine = machine == name
    t = detector.task_names_.index(name)
    from_heat = detector.contributions(X[mine], tasks=machine[mine], by="source")[:, 1].mean()
    anywhere = np.hstack([plane, np.zeros_like(plane)])
    from_sound = detector.contributions(anywhere, tasks=np.repeat(name, len(plane)), by="source")[:, 0]
    values = from_sound + from_heat + detector.intercept_[t] - detector.offset_[t]
    ax.contourf(side, side, values.reshape(80, 80), levels=20, cmap="Blues")
    ax.contour(side, side, values.reshape(80, 80), levels=[0], colors="black")
    out = detector.predict(X[mine], tasks=machine[mine]) == -1
    x = X[mine]
    ax.plot(*x[~wrong[mine]].T[:2], ".", color="white", markeredgecolor="C6", label="right")
    ax.plot(*x[wrong[mine]].T[:2], "o", color="C5", label="wrong")
    ax.plot(*x[out].T[:2], "o", color="none", markeredgecolor="black", markersize=10, label="flagged as outlier")
    ax.set(title=name, xlabel="sound, first column")
axes[0].set_ylabel("sound, second column")
axes[0].legend(loc="lower left")
plt.show()

# %%
# Kernels from several sources add up, and so do their contributions. The black line is the threshold if heat makes its
# average contribution; moments that end up on the unexpected side of the line differ in heat.
#
# Why you cannot learn widths
# ---------------------------
#
# For a single Gaussian, the objective is a function of its width. With labels or targets it has a minimum: a kernel
# that is too narrow pays for each sample, and one that is too wide can't follow the data. Without them, the curve runs
# downhill all the way, whatever the data: every entry of K grows with the width, and so does α'Kα for every α ≥ 0. If
# you divide by the variance v, the ball's R² is at least 1, and it equals 1 for the narrowest kernel, K = I: the lowest
# point is at the narrow end.

clouds = {
    "one machine": X[:100, :2],
    "four clusters": rng.integers(0, 2, (100, 2)) * 3.0 + 0.2 * rng.normal(size=(100, 2)),
    "no structure": rng.random((100, 2)),
}
widths = 2.0 ** np.arange(-5, 6)
figure, axes = plt.subplots(1, 4, figsize=(14, 3.6), layout="constrained", sharex=True)
for name, cloud in clouds.items():
    cloud = (cloud - cloud.mean(axis=0)) / cloud.std(axis=0)
    numbers = np.sin(2 * cloud[:, 0]) + 0.3 * rng.normal(size=100)
    distances = ((cloud[:, None] - cloud) ** 2).sum(axis=2)
    curves = []
    for width in widths:
        single = {"kernels": [Gaussian(width)], "ps": [1.0]}
        hinge = pareto_path(cloud, machine="one-class", C=0.1, **single).objective[0]
        radius = pareto_path(cloud, machine="svdd", C=0.1, **single).objective[0]
        ridge = pareto_path(cloud, numbers, machine="ridge", C=1.0, **single).objective[0]
        variance = 1 - np.exp(-distances / (2 * width**2)).mean()
        curves.append([hinge, radius, radius / variance, ridge])
    for ax, curve in zip(axes, np.transpose(curves), strict=True):
        ax.plot(widths, curve, "o-", markersize=4, label=name)
titles = ["one-class", "SVDD", "SVDD, divided by the variance", "ridge, with targets"]
heights = ["objective J", "squared radius R²", "R² / v", "objective J"]
for ax, title, height in zip(axes, titles, heights, strict=True):
    ax.set(title=title, xscale="log", xlabel="width of the kernel", ylabel=height, ylim=(0, None))
axes[2].set_ylim(0.9, None)
axes[0].legend()
plt.show()

# %%
# So give each source one kernel, and make sure that their effective ranks are about equal. Otherwise, for the same
# reason, the kernel under which the samples look more alike gets the weight. A bank with several widths on the same
# columns raises a warning.
