"""Estimators with the interface of scikit-learn."""

from ._learn.estimators import ParetoMKLClassifier, ParetoMKLOutlierDetector, ParetoMKLRegressor

__all__ = ["ParetoMKLClassifier", "ParetoMKLOutlierDetector", "ParetoMKLRegressor"]
