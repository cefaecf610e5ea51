"""What a fitted search needs: the importance of its sources, columns and kernels on held-out samples."""

from ._importance import Importances, importance

__all__ = ["Importances", "importance"]
