"""
Reading the trade-off
=====================

Tasks that share a kernel want different things from it. The exponent p decides who counts: p = 1 is the average, a
large p follows tasks with large objectives, a small one those with small ones. Each p gives a point on the *Pareto
front*, where no task can be served better without another one being served worse. Three pictures to read it by.
"""

# %%
# Two tasks
# ---------
#
# Six data sources, one kernel for each. Two sources matter to both tasks; beside them each task has one of its own, and
# there the interests part. The second task has more samples, and a tenth of its labels are wrong: its
# objective is the larger one.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from paretomkl import PAPER_PS, Gaussian, pareto_path
from paretomkl.datasets import make_multitask
from paretomkl.plotting import ConvergenceDisplay, FrontDisplay, KernelWeightsDisplay, ObjectivesDisplay

data = make_multitask(2, [60, 120], noise=[0.0, 0.1], relatedness=0.4, sigma=2.0, random_state=0)
names = np.array(["clean", "noisy"])[data.tasks]
kernels = [Gaussian(2.0, columns=columns) for columns in data.columns]
ps = [-20, -5, -2, -1, 0, 0.5, 1, 2, 5, np.inf]
path = pareto_path(data.data, data.target, tasks=names, ps=ps, kernels=kernels, tol=1e-5)

print(f"both tasks use the sources {data.relevant}, besides each its own: {data.own}")
print(f"{'p':>6} {'J clean':>8} {'J noisy':>8}   what each task weighs")
for p, (clean, noisy), weights in zip(path.ps, path.objectives, path.task_weights, strict=True):
    print(f"{p:6g} {clean:8.2f} {noisy:8.2f}   {weights[0]:.2f} {weights[1]:.2f}")

# %%
# Is that really a front? Each grey dot is a kernel with weights drawn at random, with both tasks solved for it. None of
# them comes below the line, and few come close.

gram = np.stack([np.exp(-np.square(data.data[:, None, c] - data.data[:, c]).sum(axis=2) / 8) for c in data.columns], 2)
rng = np.random.default_rng(0)
cloud = []
for weights in rng.dirichlet(np.full(len(kernels), 0.7), size=300):
    theta = weights / np.linalg.norm(weights, 1.1)  # on the sphere ‖θ‖_s = 1, as the learned ones are
    one_kernel = (gram @ theta)[:, :, None]
    cloud.append(pareto_path(one_kernel, data.target, tasks=names, ps=[1], kernels="precomputed").objectives[0])

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained", width_ratios=[1, 1.1])
left.scatter(*np.transpose(cloud), s=8, color="lightgray", zorder=0)
FrontDisplay.from_path(path, ax=left)
left.set(xlim=(37, 47), ylim=(62, 86))
KernelWeightsDisplay.from_path(path, ax=right)
plt.show()

# %%
# On the right, the own source of the clean task (columns 2 and 3) gives way to that of the noisy one (columns 6 and 7)
# as p grows; the sources that both of them use keep most of the weight all along.
#
# Forty-five tasks
# ----------------
#
# Ten digits are 45 pairs of digits. Along the path the hardest pair gains and the easy ones pay for it, and weight
# moves from the linear kernel and the widest Gaussian to narrower ones: for hard pairs, details matter. The bold line
# is M_p, the mean that is minimised.

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
# A sweep solves all 45 tasks once. What is learned at one p serves all others, so that each of them costs a sweep or
# two, or none. The gap is a certificate: the distance to the optimum is never larger.

ConvergenceDisplay.from_path(path)
plt.show()
