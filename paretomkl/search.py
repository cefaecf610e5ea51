"""Estimators that choose their parameters by cross-validation."""

from ._select.search import ParetoMKLClassifierCV, ParetoMKLRegressorCV

__all__ = ["ParetoMKLClassifierCV", "ParetoMKLRegressorCV"]
