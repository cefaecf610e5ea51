"""
Reading the trade-off
=====================

Tasks that share a kernel need different things from it. The exponent p decides which tasks get priority: p = 1 is the
average, a large p follows the tasks with large objectives, and a small p those with small ones. Each p gives a point on
the *Pareto front*, where you can't improve one task without making another worse. Three pictures help you read it.
"""

# %%
# Two tasks
# ---------
#
# There are six data sources with one kernel each. Two sources matter to both tasks. Each task also has a source of its
# own, and that is where their interests differ. The second task has more samples, and a tenth of its labels are wrong,
# so its objective is larger.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from paretomkl import PAPER_PS, Gaussian, pareto_path
from paretomkl.datasets import make_multitask
from paretomkl.plotting import ConvergenceDisplay, FrontDisplay, KernelWeightsDisplay, ObjectivesDisplay

data = make_multitask(2, [60, 120], noise=[0.0, 0.1], relatedness=0.4, sigma=2.0, random_state=0)
names = np.array(["clean", "noisy"])[data.tasks]
used_by = dict.fromkeys(range(6), "no task") | dict.fromkeys(data.relevant.tolist(), "both tasks")
used_by |= {source: f"{task} only" for source, task in zip(data.own, ("clean", "noisy"), strict=True)}
kernels = [Gaussian(2.0, columns=columns, source=used_by[k]) for k, columns in enumerate(data.columns)]
ps = [-20, -5, -2, -1, 0, 0.5, 1, 2, 5, np.inf]
path = pareto_path(data.data, data.target, tasks=names, ps=ps, kernels=kernels, tol=1e-5)

print(f"both tasks use the sources {data.relevant}, and each also uses its own: {data.own}")
print(f"{'p':>6} {'J clean':>8} {'J noisy':>8}   weight of each task")
for p, (clean, noisy), weights in zip(path.ps, path.objectives, path.task_weights, strict=True):
    print(f"{p:6g} {clean:8.2f} {noisy:8.2f}   {weights[0]:.2f} {weights[1]:.2f}")

# %%
# Is this really a front? Each grey dot is a kernel with random weights, with both tasks solved for it. None of them
# lies below the line, and few come close.

gram = np.stack([np.exp(-np.square(data.data[:, None, c] - data.data[:, c]).sum(axis=2) / 8) for c in data.columns], 2)
rng = np.random.default_rng(0)
cloud = []
for weights in rng.dirichlet(np.full(len(kernels), 0.7), size=300):
    theta = weights / np.linalg.norm(weights, 1.1)  # on the sphere ‖θ‖_s = 1, like the learned weights
    one_kernel = (gram @ theta)[:, :, None]
    cloud.append(pareto_path(one_kernel, data.target, tasks=names, ps=[1], kernels="precomputed").objectives[0])

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained", width_ratios=[1, 1.1])
left.scatter(*np.transpose(cloud), s=8, color="lightgray", zorder=0)
FrontDisplay.from_path(path, ax=left)
left.set(xlim=(37, 47), ylim=(62, 86))
KernelWeightsDisplay.from_path(path, by="source", ax=right)
plt.show()

# %%
# On the right, as p grows, the clean task's own source gives way to the noisy task's. The sources that both tasks use
# keep most of the weight throughout.
#
# Forty-five tasks
# ----------------
#
# Ten digits make 45 pairs. Along the path, the hardest pair improves at the expense of the easy ones, and weight moves
# from the linear kernel and the widest Gaussian to narrower ones: for hard pairs, details matter. The bold line is M_p,
# the mean that is minimised.

X, y = load_digits(return_X_y=True)
path = pareto_path(X[:200], y[:200], ps=PAPER_PS, C=10)
print(path)

figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.2), layout="constrained")
ObjectivesDisplay.from_path(path, ax=left)
KernelWeightsDisplay.from_path(path, ax=right)
plt.show()

# %%
# What it cost
# ------------
#
# A sweep solves all 45 tasks once. What is learned at one p helps at all others, so each further p costs one or two
# sweeps, or none. The gap is a certificate: the distance to the optimum is never larger.

ConvergenceDisplay.from_path(path)
plt.show()
