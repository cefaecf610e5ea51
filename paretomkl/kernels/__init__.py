"""Base kernels and banks of them."""

from ._kernels import (
    PAPER_SIGMAS,
    Cosine,
    Custom,
    Gaussian,
    Kernel,
    KernelBank,
    KernelLike,
    Laplacian,
    Linear,
    Polynomial,
    Source,
    default_kernels,
    paper_kernels,
    sources,
)

__all__ = [
    "PAPER_SIGMAS",
    "Cosine",
    "Custom",
    "Gaussian",
    "Kernel",
    "KernelBank",
    "KernelLike",
    "Laplacian",
    "Linear",
    "Polynomial",
    "Source",
    "default_kernels",
    "paper_kernels",
    "sources",
]
