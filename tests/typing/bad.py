"""Mistakes that type checkers find, one on each marked line."""

import numpy as np

import paretomkl
from paretomkl import KernelBank, ParetoMKLClassifier, pareto_path
from paretomkl.problem import MultiTaskProblem
from paretomkl.scalarizations import PowerMean
from paretomkl.weight_sets import LsBall

X = np.zeros((4, 2))
y = np.array([0, 1, 0, 1])
ParetoMKLClassifier(solver="ato")  # error
ParetoMKLClassifier(kernels=3)  # error
ParetoMKLClassifier(class_weight=3)  # error
ParetoMKLClassifier(p="x")  # error
KernelBank(normalize="uni")  # error
print(ParetoMKLClassifier().fit(X, y).thta_)  # error
ParetoMKLClassifier().fit(X, y, y)  # error
pareto_path(X, y, y)  # error
pareto_path(X, y, solver="bdc")  # error
MultiTaskProblem(3, PowerMean(1.0), LsBall(1.1))  # error
paretomkl.ParetoMKLClasifier()  # error
