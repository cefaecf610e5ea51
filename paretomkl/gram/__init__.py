"""Gram matrices of many tasks, stored in blocks of samples that share tasks and combined for one θ at a time."""

from ._blocks import CombinedGram, GramBlocks, Rounding, TaskLayout

__all__ = ["CombinedGram", "GramBlocks", "Rounding", "TaskLayout"]
