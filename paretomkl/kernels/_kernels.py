"""Base kernels and kernel banks.

A kernel is a small frozen description (``Gaussian(sigma=2.0)``). A :class:`KernelBank` turns a list of them into what
the solvers need without storing one Gram matrix per kernel: combined Gram matrices Σ_m θ_m K_m, quadratic forms v'K_m v
of many tasks, and test-time kernels.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from fnmatch import fnmatchcase
from typing import Any, ClassVar, Literal, NamedTuple, Self, TypeAlias, get_args

import numpy as np

from .._tools.public import PublicNames
from .._tools.typing import AnyArray, Array, IntArray
from .._tools.wording import literal
from ._evaluation import EXPONENTIAL, POLYNOMIAL, VALUE, Scaling, as_matrix, dense, gaps_in
from ._fitted import (
    BaseValues,
    ColumnStatistics,
    Evaluator,
    FittedBank,
    Function,
    Groups,
    Scale,
    SparseStatistics,
    Standardizer,
    TrainingStatistics,
    capacity_factor,
    inverse,
    like_counts,
    measure,
    most_measured,
    roots,
    statistics_of,
)
from ._preparing import Preparation

Columns: TypeAlias = int | str | slice | Sequence[int] | Sequence[str] | Sequence[int | str] | IntArray | None
Normalization: TypeAlias = Literal["auto", "unit", "trace", "capacity", "none"]

PAPER_SIGMAS = tuple(2.0**k for k in (-7, -5, -3, -1, 0, 1, 3, 5, 7))
# widths of the default bank in units of the typical distance
GAUSSIAN_WIDTHS = tuple(2.0**k for k in (-3, -2, -1, 0, 1, 2))
LAPLACIAN_WIDTHS = tuple(2.0**k for k in (-2, -1, 0, 1, 2))
COUNT_WIDTHS = (0.5, 1.0, 2.0)
SOURCE_WIDTHS = (0.5, 1.0, 2.0)  # with several sources, whose narrow kernels would add up to an identity matrix


# by ``standardize``
_SCALINGS: dict[bool | str, Scaling] = {True: "standardize", False: "none", "root": "root", "range": "standardize"}


# ------------------------------------------------------------------------------------------------ kernels
class Code(NamedTuple):
    """How compiled code computes a kernel from its base value; see :class:`~paretomkl.kernels._evaluation.Program`."""

    kind: int
    rate: float = 0.0
    offset: float = 0.0
    degree: int = 1


@dataclass(frozen=True)
class Kernel(PublicNames):
    """Base class of all kernels: the columns of X that a kernel uses (``None``: all), its name and its source.

    To add a kernel, write a subclass with its ``code``. ``metric`` names the base matrix: "sqeuclidean", or another
    distance of :func:`scipy.spatial.distance.cdist`. ``scaling`` sets whether values are divided by the norms of both
    samples: "always", "never", or "bank" to follow the bank's normalisation. ``semidefinite`` kernels are positive
    semidefinite by their formula and need no check.
    """

    _internal = ("code", "measures_itself", "metric", "scaling", "semidefinite", "within")

    columns: Columns = field(default=None, kw_only=True)
    name: str | None = field(default=None, kw_only=True)
    source: str | None = field(default=None, kw_only=True)
    metric: ClassVar[str] = "sqeuclidean"
    scaling: ClassVar[Literal["always", "never", "bank"]] = "bank"
    semidefinite: ClassVar[bool] = True
    measures_itself: ClassVar[bool] = True  # whether there is k(x, x) of new samples

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", _plain_columns(self.columns))

    def __str__(self) -> str:
        name = (self.name or self._described()) + self._on_columns()
        return f"{self.source}: {name}" if self.source else name

    def _described(self) -> str:
        # show the first parameter always, the others if they differ from the default
        given = [f for f in fields(self) if f.name not in ("columns", "name", "source")]
        shown = [f.name for i, f in enumerate(given) if i == 0 or getattr(self, f.name) != f.default]
        parameters = ", ".join(f"{name}={getattr(self, name):g}" for name in shown)
        return f"{type(self).__name__.lower()}{f'({parameters})' if parameters else ''}"

    def _on_columns(self) -> str:
        if self.columns is None or self.name or self.source:
            return ""
        return f" on {list(self.columns) if isinstance(self.columns, tuple) else self.columns!r}"

    @property
    def code(self) -> Code:
        raise NotImplementedError

    def within(self, seen: IntArray) -> IntArray:
        """Which of the columns of its source it uses."""
        return seen

    def diagonal(self, X: Array) -> Array:
        """k(x, x) of the rows of X (the kernel's columns only) before scaling, if base values are kernel values."""
        return np.ones(X.shape[0])

    def base_values(self, X: Array, Z: Array) -> Array:
        """The base matrix between the rows of X and the rows of Z."""
        from scipy.spatial.distance import cdist  # imported here because it is slow and most banks do not need it

        return np.asarray(cdist(dense(X), dense(Z), self.metric))


@dataclass(frozen=True)
class Linear(Kernel):
    """k(x, z) = x'z.

    Parameters
    ----------
    columns : int, str, slice or list of these, default=None
        The columns of X that it uses; None is all of them.
    source : str, default=None
        The source that its share counts toward.
    name : str, default=None
        Its name in tables and figures; None builds a name from its parameters.

    Examples
    --------
    >>> from paretomkl import Linear
    >>> print(Linear(columns=[0, 1]))
    linear on [0, 1]
    """

    @property
    def code(self) -> Code:
        return Code(POLYNOMIAL, rate=1.0)


@dataclass(frozen=True)
class Polynomial(Kernel):
    """k(x, z) = (γ x'z + c)^degree.

    Parameters
    ----------
    degree : int, default=2
        An integer of at least 1.
    gamma : float, default=1.0
        γ > 0.
    coef0 : float, default=1.0
        c ≥ 0.
    columns : int, str, slice or list of these, default=None
        The columns of X that it uses; None is all of them.
    source : str, default=None
        The source that its share counts toward.
    name : str, default=None
        Its name in tables and figures; None builds a name from its parameters.

    Examples
    --------
    >>> from paretomkl import Polynomial
    >>> print(Polynomial(degree=3))
    polynomial(degree=3)
    """

    degree: int = 2
    gamma: float = 1.0
    coef0: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (isinstance(self.degree, numbers.Integral) and self.degree >= 1):
            raise ValueError(f"A polynomial kernel needs an integer degree >= 1, got degree={literal(self.degree)}.")
        _require_positive(self, "gamma")
        if not (np.isfinite(self.coef0) and self.coef0 >= 0):
            raise ValueError(
                f"A polynomial kernel needs coef0 >= 0 to be positive semidefinite, got coef0={literal(self.coef0)}."
            )

    @property
    def code(self) -> Code:
        return Code(POLYNOMIAL, self.gamma, self.coef0, self.degree)


@dataclass(frozen=True)
class Gaussian(Kernel):
    """k(x, z) = exp(−‖x − z‖² / 2σ²).

    Parameters
    ----------
    sigma : float, default=1.0
        Width σ, in the units of the columns; scikit-learn's γ is 1 / 2σ².
    columns : int, str, slice or list of these, default=None
        The columns of X that it uses; None is all of them.
    source : str, default=None
        The source that its share counts toward.
    name : str, default=None
        Its name in tables and figures; None builds a name from its parameters.

    Examples
    --------
    >>> from paretomkl import Gaussian
    >>> print(Gaussian(sigma=2.0))
    gaussian(sigma=2)
    """

    sigma: float = 1.0
    scaling: ClassVar = "never"

    def __post_init__(self) -> None:
        super().__post_init__()
        _require_positive(self, "sigma")
        if not 1e-150 < self.sigma < 1e150:
            raise ValueError(
                f"A gaussian kernel needs sigma between 1e-150 and 1e150, got sigma={literal(self.sigma)}."
            )

    @property
    def code(self) -> Code:
        return Code(EXPONENTIAL, 0.5 / self.sigma**2)


@dataclass(frozen=True)
class Laplacian(Kernel):
    """k(x, z) = exp(−γ ‖x − z‖_1).

    Parameters
    ----------
    gamma : float, default=1.0
        γ > 0; 1/γ is the width.
    columns : int, str, slice or list of these, default=None
        The columns of X that it uses; None is all of them.
    source : str, default=None
        The source that its share counts toward.
    name : str, default=None
        Its name in tables and figures; None builds a name from its parameters.

    Examples
    --------
    >>> from paretomkl import Laplacian
    >>> print(Laplacian(gamma=0.5))
    laplacian(gamma=0.5)
    """

    gamma: float = 1.0
    metric: ClassVar[str] = "cityblock"
    scaling: ClassVar = "never"

    def __post_init__(self) -> None:
        super().__post_init__()
        _require_positive(self, "gamma")

    @property
    def code(self) -> Code:
        return Code(EXPONENTIAL, self.gamma)


@dataclass(frozen=True)
class Cosine(Linear):
    """k(x, z) = x'z / (‖x‖ ‖z‖), and zero if x or z is zero.

    Inner products are computed from distances. If one vector is c times as long as the other, the value keeps
    16 − log10(c) digits.

    Parameters
    ----------
    columns : int, str, slice or list of these, default=None
        The columns of X that it uses; None is all of them.
    source : str, default=None
        The source that its share counts toward.
    name : str, default=None
        Its name in tables and figures; None builds a name from its parameters.

    Examples
    --------
    >>> from paretomkl import Cosine
    >>> print(Cosine())
    cosine
    """

    scaling: ClassVar = "always"


@dataclass(frozen=True)
class Custom(Kernel):
    """A kernel given as a function.

    A list of kernels may contain the plain function; use this class to set columns, a source and a name.

    Parameters
    ----------
    function : callable
        ``function(X, Z)`` returns the matrix of shape (len(X), len(Z)), symmetric and positive semidefinite for Z = X.
    columns : int, str, slice or list of these, default=None
        The columns of X that it uses; None is all of them.
    source : str, default=None
        The source that its share counts toward.
    name : str, default=None
        Its name in tables and figures; None builds a name from its parameters.

    Examples
    --------
    >>> from sklearn.metrics.pairwise import chi2_kernel
    >>> from paretomkl import Custom
    >>> print(Custom(function=chi2_kernel, columns=[0, 1]))
    chi2_kernel on [0, 1]
    """

    function: Callable[[Array, Array], Array] = field(kw_only=True)
    metric: ClassVar[str] = "custom"
    semidefinite: ClassVar[bool] = False

    @property
    def code(self) -> Code:
        return Code(VALUE)

    def _described(self) -> str:
        return getattr(self.function, "__name__", None) or str(self.function)

    def base_values(self, X: Array, Z: Array) -> Array:
        K = np.asarray(dense(self.function(X, Z)), dtype=np.float64)
        n, m = X.shape[0], Z.shape[0]
        if K.shape != (n, m):
            raise ValueError(
                f"Kernel {self} must return a matrix of shape ({n}, {m}) for {n} and {m} samples, got shape {K.shape}."
            )
        if not np.isfinite(K).all():
            raise ValueError(f"Kernel {self} returned NaN or infinite values.")
        return K

    def diagonal(self, X: Array) -> Array:
        if hasattr(self.function, "diag"):  # kernel objects of scikit-learn's Gaussian processes
            return np.asarray(self.function.diag(X), dtype=np.float64)
        return np.concatenate(
            [np.diag(self.base_values(X[i : i + 64], X[i : i + 64])) for i in range(0, X.shape[0], 64)]
        )


@dataclass(frozen=True)
class _Precomputed(Kernel):
    """One kernel of a precomputed stack."""

    position: int = 0
    metric: ClassVar[str] = "precomputed"
    semidefinite: ClassVar[bool] = False
    measures_itself: ClassVar[bool] = False

    @property
    def code(self) -> Code:
        return Code(VALUE)

    def _described(self) -> str:
        return f"{self.position} of the precomputed stack"


@dataclass(frozen=True)
class _OfStack(Kernel):
    """One kernel of a stack that is a block of X.

    A sample has its kernel values with all training samples, and last the number of its own row in training, or −1.
    """

    position: int = 0
    n_kernels: int = 1
    metric: ClassVar[str] = "custom"
    scaling: ClassVar = "never"
    semidefinite: ClassVar[bool] = False
    measures_itself: ClassVar[bool] = False

    @property
    def code(self) -> Code:
        return Code(VALUE)

    def _described(self) -> str:
        return f"kernel {self.position}"

    def within(self, seen: IntArray) -> IntArray:
        n = (len(seen) - 1) // self.n_kernels
        return np.append(seen[self.position * n : (self.position + 1) * n], seen[-1])

    def base_values(self, X: Array, Z: Array) -> Array:
        X, Z = dense(X), dense(Z)
        own, other = X[:, -1].astype(np.int64), Z[:, -1].astype(np.int64)
        return X[:, other] if (other >= 0).all() else Z[:, own].T

    def diagonal(self, X: Array) -> Array:
        at = dense(X)[:, -1].astype(np.int64)
        if (at < 0).any():
            raise ValueError(f"Kernel {self} has no k(x, x) of new samples, which SVDD needs; use 'one-class'.")
        return dense(X)[np.arange(len(at)), at]


def _plain_columns(columns: Columns) -> Columns:
    """Columns as numbers, text and tuples of these, which compare and serialise better than arrays."""
    if isinstance(columns, numbers.Integral) and not isinstance(columns, bool):
        return int(columns)
    if isinstance(columns, Iterable) and not isinstance(columns, str):
        return tuple(c.item() if isinstance(c, np.generic) else c for c in columns)
    return columns


KernelSpec: TypeAlias = "Kernel | str | Callable[[Array, Array], Array] | tuple[Any, dict[str, Any]]"
KernelLike: TypeAlias = "Literal['default', 'paper', 'precomputed'] | Sequence[KernelSpec] | KernelBank"


def _require_positive(kernel: Kernel, name: str) -> None:
    value: Any = getattr(kernel, name)
    if not (isinstance(value, numbers.Real) and 0 < float(value) < np.inf):
        kind = type(kernel).__name__
        article = "An" if kind[0] in "AEIOU" else "A"
        raise ValueError(f"{article} {kind.lower()} kernel needs a positive {name}, got {name}={literal(value)}.")


def _gaussian(gamma: float | None = None, **parameters: Any) -> Gaussian:
    """A Gaussian from σ, or from scikit-learn's γ = 1 / 2σ²."""
    if gamma is not None:
        if "sigma" in parameters:
            raise ValueError("A Gaussian kernel takes sigma or gamma = 1 / 2 sigma², not both.")
        if not (isinstance(gamma, numbers.Real) and gamma > 0):
            raise ValueError(f"A Gaussian kernel needs a positive gamma, got gamma={literal(gamma)}.")
        parameters["sigma"] = float(np.sqrt(0.5 / gamma))
    return Gaussian(**parameters)


NAMED_KERNELS: dict[str, Callable[..., Kernel]] = {
    "linear": Linear,
    "poly": Polynomial,
    "polynomial": Polynomial,
    "gaussian": _gaussian,
    "rbf": _gaussian,
    "laplacian": Laplacian,
    "cosine": Cosine,
}


def paper_kernels() -> list[Kernel]:
    """The eleven kernels of the paper: linear, quadratic, and Gaussians with nine widths.

    Returns
    -------
    list of kernels
        For columns scaled to [0, 1]; the widths are 2⁻⁷, 2⁻⁵, 2⁻³, 2⁻¹, 1, 2, 2³, 2⁵ and 2⁷.

    Examples
    --------
    >>> from paretomkl.kernels import paper_kernels
    >>> len(paper_kernels())
    11
    """
    return [Linear(), Polynomial(degree=2), *(Gaussian(sigma) for sigma in PAPER_SIGMAS)]


def default_kernels(
    X: Array | Scale, weight: Array | None = None, *, several_sources: bool = False, **where: Any
) -> list[Kernel]:
    """Linear, quadratic, Gaussian and Laplacian kernels for standardised samples.

    Widths are multiples of the typical distance: the median of ‖x − z‖_2 for exp(−‖x − z‖² / 2σ²), and of ‖x − z‖_1 for
    exp(−‖x − z‖_1 / w).

    Parameters
    ----------
    X : array of shape (n_samples, n_features), or Scale
        Standardised samples, or their typical distances.
    weight : array of shape (n_samples,), default=None
        Sample weights for the median.
    several_sources : bool, default=False
        Whether other sources get kernels too. Then the widths are only ½, 1 and 2 times the typical distance, because
        the narrow kernels of many sources add up to an identity matrix, which fits anything. A cosine kernel takes the
        place of the linear and the quadratic one, whose values depend most on the samples farthest from the mean.
    **where : dict
        ``columns`` and ``source`` of the kernels.

    Returns
    -------
    list of kernels
        Thirteen kernels: linear, quadratic, six Gaussians, five Laplacians. With several sources, seven for each.

    Examples
    --------
    >>> import numpy as np
    >>> from paretomkl.kernels import default_kernels
    >>> len(default_kernels(np.random.default_rng(0).normal(size=(50, 3))))
    13
    """
    euclidean, cityblock, n_varying = X if isinstance(X, Scale) else Scale.of(X, weight)
    gaussians, laplacians = (SOURCE_WIDTHS,) * 2 if several_sources else (GAUSSIAN_WIDTHS, LAPLACIAN_WIDTHS)
    products: list[Kernel] = [Linear(**where), Polynomial(degree=2, gamma=1 / n_varying, name="quadratic", **where)]
    if several_sources:  # the cosine of a single column is just its sign
        products = [Cosine(**where)] if n_varying > 1 else products[:1]
    return [
        *products,
        *(Gaussian(euclidean * width, name=f"gaussian ×{width:g}", **where) for width in gaussians),
        *(Laplacian(1 / (cityblock * width), name=f"laplacian ×{width:g}", **where) for width in laplacians),
    ]


def count_kernels(scale: Scale, *, several_sources: bool = False, **where: Any) -> list[Kernel]:
    """Linear, cosine, Gaussian and Laplacian kernels for counts and the like, with typical distances ``scale``.

    With several sources, or sparse samples, whose L1 distances are slow and not in ``scale``, there are no Laplacians.
    """
    gaussians = (1.0,) if several_sources else COUNT_WIDTHS
    laplacians = () if several_sources or np.isnan(scale.cityblock) else COUNT_WIDTHS
    return [
        Linear(**where),
        Cosine(**where),
        *(Gaussian(scale.euclidean * width, name=f"gaussian ×{width:g}", **where) for width in gaussians),
        *(Laplacian(1 / (scale.cityblock * width), name=f"laplacian ×{width:g}", **where) for width in laplacians),
    ]


def one_gaussian(scale: Scale, **where: Any) -> list[Kernel]:
    """A Gaussian whose width is the typical distance of standardised samples, for when widths cannot be learned."""
    return [Gaussian(scale.euclidean, name="gaussian ×1", **where)]


def as_kernel(spec: KernelSpec, position: int = 0) -> Kernel:
    """A kernel from an object, a name, a callable, or a pair (name or callable, dict of parameters)."""
    if isinstance(spec, Kernel):
        return spec
    parameters: dict[str, Any] = {}
    what = spec
    if isinstance(spec, tuple):
        if len(spec) != 2 or not isinstance(spec[1], dict):
            raise ValueError(f"Kernel {position} must be a pair (name or callable, dict of parameters), got {spec!r}.")
        what, parameters = spec[0], dict(spec[1])
    if isinstance(what, str):
        if what not in NAMED_KERNELS:
            raise ValueError(f"Kernel {position} has the unknown name {what!r}; use one of {sorted(NAMED_KERNELS)}.")
        try:
            return NAMED_KERNELS[what](**parameters)
        except TypeError as error:
            raise ValueError(f"Kernel {position} ({what!r}) does not take these parameters: {parameters}.") from error
    if isinstance(what, Kernel):
        try:
            return replace(what, **parameters)
        except TypeError as error:
            raise ValueError(f"Kernel {position} ({what}) does not take these parameters: {parameters}.") from error
    if isinstance(what, type):
        raise ValueError(f"Kernel {position} is the class {what.__name__}; pass an instance, {what.__name__}(…).")
    if callable(what):
        columns = parameters.pop("columns", None)
        if parameters:
            raise ValueError(
                f"Kernel {position} is a callable and takes only 'columns', not {sorted(parameters)}; "
                "bind other parameters with functools.partial."
            )
        return Custom(function=what, columns=columns)
    raise ValueError(
        f"Kernel {position} must be a kernel object, a name, a callable or a pair with parameters, got {spec!r}."
    )


# --------------------------------------------------------------------------------------------------- banks
@dataclass(frozen=True)
class Source:
    """The columns of one source for :func:`~paretomkl.kernels.sources`, their kernels and how they are scaled.

    Parameters
    ----------
    columns : int, str, slice or list of these, default=None
        An index or a name, a list of either, a slice, or a pattern such as ``"g_*"`` that selects all matching names.
        None means all columns of X.
    standardize : bool, "root" or "auto", default="auto"
        Whether to scale each column to mean zero and standard deviation one, and to clip outliers. ``"root"`` takes
        square roots instead, which makes rare and common counts comparable. ``"auto"`` does so if the source has no
        negative value, is mostly zero and no column outweighs the others, as is the case for counts, shares,
        indicators and tf-idf, and standardises other sources; the training samples decide. Without standardising, a
        source is only scaled as a whole.
    kernels : sequence of kernels, default=None
        Kernels without columns of their own. None makes the default kernels: with several sources a cosine kernel,
        Gaussians and Laplacians.

    Examples
    --------
    >>> from paretomkl import Cosine, Linear, Source, sources
    >>> bank = sources({"words": Source("w_*", standardize=False, kernels=[Linear(), Cosine()]), "genes": "g_*"})
    >>> bank.n_sources
    2
    """

    columns: Columns = None
    standardize: bool | Literal["root", "auto"] = "auto"
    kernels: Sequence[KernelSpec] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", _plain_columns(self.columns))
        _check_standardize(self.standardize)
        if self.kernels is not None:
            object.__setattr__(self, "kernels", tuple(_own_kernels(self.kernels)))


class Block(NamedTuple):
    """A block of X: its columns, and the number of its kernels if it is a stack of kernels."""

    columns: slice
    n_kernels: int = 0

    @property
    def source(self) -> Source:
        """The source that the block is by default."""
        if not self.n_kernels:
            return Source(self.columns)
        return Source(self.columns, False, [_OfStack(k, self.n_kernels) for k in range(self.n_kernels)])


def _in_blocks(columns: Columns, blocks: Mapping[str, Block]) -> Columns:
    """The columns, with the positions of its columns for each name of a block."""
    if columns is None or isinstance(columns, slice | numbers.Integral):
        return columns
    found: list[int | str] = []
    for column in [columns] if isinstance(columns, str) else columns:  # type: ignore[union-attr]
        own = blocks.get(column) if isinstance(column, str) else None
        if own is not None and own.n_kernels:
            raise ValueError(f"Block {column!r} is a stack of kernels; make it a source of its own, not part of one.")
        found += [column] if own is None else range(own.columns.start, own.columns.stop)
    return tuple(found)


def _own_kernels(given: Any) -> Iterator[Kernel]:
    """The kernels of a source, checked."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise ValueError(f"kernels of a Source must be a list of kernels, got {given!r}.")
    kernels = [as_kernel(spec, position) for position, spec in enumerate(given)]
    if not kernels:
        raise ValueError("kernels of a Source is empty; pass at least one kernel, or None for the default ones.")
    for kernel in kernels:
        if kernel.columns is not None or kernel.source is not None:
            raise ValueError(f"Kernel {kernel} of a Source has columns or a source of its own; leave them out.")
        yield kernel


def _check_standardize(standardize: object) -> None:
    named = isinstance(standardize, str) and standardize in ("auto", "root")
    if not (named or isinstance(standardize, bool | np.bool_)):
        raise ValueError(f"standardize must be True, False, 'root' or 'auto', got {standardize!r}.")


@dataclass(frozen=True)
class Sources:
    """Named blocks of columns, each with its own kernels; created by :func:`~paretomkl.kernels.sources`.

    With ``one_width``, each block has a single Gaussian of the typical distance instead of default kernels.
    """

    blocks: Mapping[str, Source]
    one_width: bool = False


@dataclass
class KernelBank(PublicNames):
    """An ordered list of base kernels with one normalisation.

    Parameters
    ----------
    kernels : "default", "paper", "precomputed", ``sources(…)``, or a sequence, default="default"
        ``"default"`` adapts to the data (:func:`~paretomkl.kernels.default_kernels`);
        :func:`~paretomkl.kernels.sources` makes one default bank per source. ``"paper"`` is the bank of the paper
        (:func:`~paretomkl.kernels.paper_kernels`). A sequence may mix kernel objects, names, callables ``f(X, Z)``,
        scikit-learn's kernel objects, and pairs ``(name or callable, parameters)``; the parameter ``columns`` (index,
        name, or list of either) restricts a kernel to some columns of X. With ``"precomputed"``, X is a stack of shape
        (n, n, n_kernels).
    normalize : {"auto", "unit", "trace", "capacity", "none"}, default="auto"
        ``"unit"`` gives every sample norm one, k(x,z) / √(k(x,x) k(z,z)). ``"trace"`` divides each kernel by the mean
        of its training diagonal. ``"capacity"`` divides each kernel by v r^κ, with its variance v = tr(K_c) / n and its
        effective rank r = (tr K_c)² / ‖K_c‖_F², where K_c is the training matrix centred within a task. v and r are
        means over the tasks, estimated from at most a thousand random tasks and a thousand random samples per task.
        With named sources, r is relative to the smallest r of the same source. ``"auto"`` is ``"capacity"`` for the
        default bank and for sources, ``"none"`` for precomputed stacks, and ``"unit"`` for other kernels.
    capacity : float, default=0.5
        κ of ``normalize="capacity"``, at least 0. With 0, all kernels have the same variance; a larger κ puts a higher
        penalty on kernels that can fit anything.
    standardize : bool, "root", "range" or "auto", default="auto"
        Whether to scale columns to mean zero and standard deviation one first, and to clip outliers. ``"auto"`` does
        so for the default bank and for sources, except that blocks of counts and the like get square roots (``"root"``)
        instead. ``"range"`` maps the range of each column in the training samples to [0, 1], as the kernels of the
        paper expect, and needs a list of kernels or ``"paper"``. A :class:`~paretomkl.kernels.Source` can decide for
        itself.
    cache_mb : float, default=512
        Base matrices (distances, values of callables, a reordered copy of a precomputed stack) are kept in memory up to
        this size. Beyond it, they are recomputed, a few rows at a time, whenever they are needed. Large tasks,
        which are solved on some columns at a time, may use four times this size if whole matrices would take more.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from paretomkl import KernelBank, ParetoMKLClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> bank = KernelBank(["linear", ("rbf", {"gamma": 1.0})], normalize="capacity")
    >>> ParetoMKLClassifier(kernels=bank).fit(X, y).theta_.shape
    (2,)
    """

    _internal = (
        *("check", "columns_by_source", "fit_and_measure", "fit_remote", "for_blocks", "kernels_with_distances"),
        *("made_from_data", "n_sources", "normalization", "with_one_width", "with_scaling"),
    )

    kernels: Literal["default", "paper", "precomputed", "one width"] | Sources | Iterable[KernelSpec] = "default"
    normalize: Normalization = "auto"
    capacity: float = 0.5
    standardize: bool | Literal["root", "range", "auto"] = "auto"
    cache_mb: float = 512.0

    def __post_init__(self) -> None:
        if isinstance(self.kernels, Iterator):  # an iterator can be read only once, but a bank may be fitted again
            self.kernels = list(self.kernels)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name, so that scikit-learn can search over ``kernels__capacity``."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def set_params(self, **params: Any) -> Self:
        for name, value in params.items():
            if name not in self.get_params():
                raise ValueError(f"KernelBank has no parameter {name!r}; it has {list(self.get_params())}.")
            setattr(self, name, value)
        self.__post_init__()
        return self

    @property
    def n_sources(self) -> int:
        """Number of named blocks of columns; zero unless :func:`~paretomkl.kernels.sources` made the bank."""
        return len(self.kernels.blocks) if isinstance(self.kernels, Sources) else 0

    @property
    def made_from_data(self) -> bool:
        """Whether the kernels and their widths depend on the samples."""
        return isinstance(self.kernels, Sources) or (
            isinstance(self.kernels, str) and self.kernels in ("default", "one width")
        )

    def with_one_width(self) -> KernelBank:
        """A bank with one Gaussian per source instead of a default bank; other banks are returned unchanged."""
        if isinstance(self.kernels, Sources):
            return replace(self, kernels=replace(self.kernels, one_width=True))
        return replace(self, kernels="one width") if self.made_from_data else self

    def for_blocks(self, blocks: Mapping[str, Block]) -> KernelBank:
        """The bank for X made of blocks: without sources of its own, a default bank has one source per block.

        In a source, the name of a block stands for its columns; a source without columns has those of its namesake.
        """
        if not blocks or not self.made_from_data:
            return self
        if not isinstance(self.kernels, Sources):
            own = {name: block.source for name, block in blocks.items()}
            return replace(self, kernels=Sources(own, one_width=self.kernels == "one width"))
        own = {}
        for name, about in self.kernels.blocks.items():
            of = name if about.columns is None and name in blocks else about.columns
            if isinstance(of, str) and of in blocks and blocks[of].n_kernels:
                own[name] = blocks[of].source
            else:
                own[name] = replace(about, columns=_in_blocks(of, blocks))
        return replace(self, kernels=replace(self.kernels, blocks=own))

    @property
    def normalization(self) -> Normalization:
        """The normalisation, with "auto" resolved."""
        if self.normalize != "auto":
            return self.normalize
        return "capacity" if self.made_from_data else "none" if is_precomputed(self) else "unit"

    def fit(
        self,
        X: AnyArray,
        feature_names: Sequence[str] | None = None,
        weight: Array | None = None,
        groups: Groups | None = None,
        n_levels: Mapping[int, int] | None = None,
    ) -> FittedBank:
        """Resolve names and columns for data X of shape (n, n_features), or a stack (n, n, n_kernels).

        ``weight`` (n,) enters all estimates; a sample of weight zero counts as absent. ``groups`` holds the rows and
        the weights of each task; by default all samples form one group. ``n_levels`` are the numbers of categories of
        the columns that hold their codes 0, 1, …; NaN is a gap.
        """
        return self.fit_and_measure(X, feature_names, weight, groups, n_levels=n_levels)[0]

    def fit_and_measure(
        self,
        X: AnyArray,
        names: Sequence[str] | None,
        weight: Array | None,
        groups: Groups | None,
        level: bool = False,
        n_levels: Mapping[int, int] | None = None,
    ) -> tuple[FittedBank, BaseValues | None]:
        """``fit``, and the base values among all samples if the kernels were measured there, for a Gram store.

        With ``level``, the last column of X is the code of a task, and a further kernel [same task] gives each task a
        penalised intercept. ``n_levels`` are the numbers of categories of the columns that hold their codes.
        """
        self.check()
        if weight is not None:  # by a power of two, which rounds nothing: sums of products must not underflow
            weight = np.ldexp(weight, -np.frexp(np.max(weight))[1])
        if is_precomputed(self):
            X = np.asarray(X)
            kernels: list[Kernel] = [_Precomputed(m) for m in range(X.shape[2])]
            evaluator, statistics = Evaluator.of(kernels, None, False), None
        else:
            X = as_matrix(X)
            n_features = X.shape[1] - level
            preparation = self._preparation(X, n_features, names, weight, n_levels)
            statistics = statistics_of(X if preparation is None else preparation(X), weight)
            evaluator = self._evaluator(statistics, n_features, names, level, preparation)
        n = X.shape[0]
        groups = groups or [(np.arange(n), np.ones(n) if weight is None else weight)]
        most = most_measured(evaluator.n_kernels, self.normalization)
        variance, rank, known = measure(evaluator, X, groups, most, self.cache_mb * 2**20)
        sizes = None
        if self.normalization == "trace":
            sizes = (
                np.average(evaluator.diagonals(X), axis=1, weights=weight)
                if statistics is None
                else statistics_of(X, weight).mean(evaluator.diagonals_by_sample)  # the evaluator prepares X itself
            )
        return self._fitted(evaluator, variance, rank, sizes), known

    def fit_remote(
        self, statistics: TrainingStatistics, n_features: int, feature_names: Sequence[str] | None = None
    ) -> FittedBank:
        """Fit the bank from statistics of the samples instead of the samples themselves."""
        self.check()
        if is_precomputed(self):
            raise ValueError("kernels='precomputed' needs the samples of all tasks in one place; pass features.")
        evaluator = self._evaluator(statistics, n_features, feature_names)
        spread = statistics.spread(evaluator, most_measured(evaluator.n_kernels, self.normalization))
        sizes = statistics.mean(evaluator.diagonals_by_sample) if self.normalization == "trace" else None
        return self._fitted(evaluator, *spread, sizes)

    def _evaluator(
        self,
        statistics: ColumnStatistics,
        n_features: int,
        names: Sequence[str] | None,
        level: bool = False,
        preparation: Preparation | None = None,
    ) -> Evaluator:
        """The kernels and their columns, for samples with these statistics; ``level`` is as in ``fit_and_measure``."""
        made: list[tuple[Kernel, IntArray]] = []
        scaling: list[Scaling] = []
        expanded = preparation.expanded if preparation is not None else lambda columns: columns
        if self.made_from_data:
            blocks = [(name, about, expanded(seen)) for name, about, seen in self.columns_by_source(n_features, names)]
            done = self._scaling(statistics, blocks)
            standardizer = self._standardizer(statistics, blocks, done, preparation)
            scalers: dict[Scaling, Function | None] = {"standardize": standardizer, "root": roots, "none": None}
            for (source, about, seen), way in zip(blocks, done, strict=True):
                where: dict[str, Any] = {"columns": seen, "source": source} if source else {}
                if about.kernels is None:
                    own = self._default_kernels(way, statistics.scale(scalers[way], seen), where)
                else:
                    own = [replace(as_kernel(kernel), **where) for kernel in about.kernels]
                made += [(kernel, kernel.within(seen)) for kernel in own]
                scaling += [way] * len(own)
        else:
            for kernel in self._listed_kernels():
                if made and kernel.columns == made[-1][0].columns:
                    seen = made[-1][1]
                else:
                    seen = expanded(resolve_columns(kernel.columns, n_features, names, f"Kernel {kernel}"))
                made.append((kernel, seen))
            way = _SCALINGS[False if self.standardize == "auto" else self.standardize]
            every = [("", Source(), expanded(np.arange(n_features)))]
            standardizer = self._standardizer(statistics, every, [way], preparation)
            scaling = [way] * len(made)
        if level:
            # codes are whole numbers, so this is one within a task and zero (below 1e-300) between tasks
            made.append((Gaussian(0.02, name="level"), np.array([n_features])))
            scaling.append("none")
        # medians are values of the samples, so that subtracting them is exact if the samples are close together
        width = n_features if preparation is None else preparation.n_columns
        middle = statistics.quantiles((0.5,))[0] if {*scaling} - {"standardize"} else np.zeros(width)
        kernels, columns = [kernel for kernel, _ in made], [seen for _, seen in made]
        return Evaluator.of(kernels, columns, self.normalization == "unit", standardizer, middle, scaling, preparation)

    def _preparation(
        self,
        X: AnyArray,
        n_features: int,
        names: Sequence[str] | None,
        weight: Array | None,
        n_levels: Mapping[int, int] | None,
    ) -> Preparation | None:
        """What fills the gaps of samples X and makes indicators of their categories; None if nothing is to do."""
        if not (n_levels or gaps_in(X)):
            return None
        blocks = self.columns_by_source(n_features, names) if self.n_sources else []
        return Preparation.of(X, weight, n_levels, [seen for _, _, seen in blocks])

    def columns_by_source(self, n_features: int, names: Sequence[str] | None) -> list[tuple[str, Source, IntArray]]:
        """The name, the description and the columns of each source; one without a name for a default bank."""
        blocks = self.kernels.blocks if isinstance(self.kernels, Sources) else {"": Source()}
        return [
            (name, about, resolve_columns(about.columns, n_features, names, f"Source {name!r}"))
            for name, about in blocks.items()
        ]

    def kernels_with_distances(
        self, n_features: int, names: Sequence[str] | None
    ) -> Iterator[tuple[str, Kernel, IntArray]]:
        """The first kernel of the user in each source that is not a function of inner products, and its columns."""
        if self.made_from_data:
            blocks = self.columns_by_source(n_features, names)
            listed = [(name, as_kernel(spec), seen) for name, about, seen in blocks for spec in about.kernels or ()]
        else:
            kernels = [] if is_precomputed(self) else self._listed_kernels()
            columns = [resolve_columns(kernel.columns, n_features, names, f"Kernel {kernel}") for kernel in kernels]
            listed = [(kernel.source or "", kernel, seen) for kernel, seen in zip(kernels, columns, strict=True)]
        noted: set[str] = set()
        for name, kernel, seen in listed:
            if name not in noted and (kernel.code.kind == EXPONENTIAL or kernel.metric == "cityblock"):
                noted.add(name)
                yield name, kernel, seen

    def _scaling(self, statistics: ColumnStatistics, blocks: list[tuple[str, Source, IntArray]]) -> list[Scaling]:
        """What to do to the columns of each source."""
        wanted = [self.standardize if about.standardize == "auto" else about.standardize for _, about, _ in blocks]
        counts = [False] * len(blocks)
        if "auto" in wanted:
            counts = like_counts(statistics, [seen for _, _, seen in blocks])
        found: list[Scaling] = []
        for wish, like, (_, _, seen) in zip(wanted, counts, blocks, strict=True):
            stays_sparse = isinstance(statistics, SparseStatistics) and statistics.mostly_zero(seen)
            auto: Scaling = "root" if like else "none" if stays_sparse else "standardize"
            found.append(auto if wish == "auto" else _SCALINGS[wish])
        return found

    def _standardizer(
        self,
        statistics: ColumnStatistics,
        blocks: list[tuple[str, Source, IntArray]],
        scaling: list[Scaling],
        preparation: Preparation | None = None,
    ) -> Standardizer | None:
        if "standardize" not in scaling:
            return None
        if not isinstance(statistics, SparseStatistics):
            if self.standardize == "range":
                return Standardizer.of_ranges(statistics)
            found = Standardizer.of(statistics)
        else:
            seen = [seen for (_, _, seen), way in zip(blocks, scaling, strict=True) if way == "standardize"]
            found = statistics.standardizer(np.unique(np.concatenate(seen)))
        categories = () if preparation is None else preparation.categories
        return found.joining([category.columns for category in categories])

    def with_scaling(
        self, X: AnyArray, names: Sequence[str] | None, n_levels: Mapping[int, int] | None = None
    ) -> KernelBank:
        """The bank with the scaling of each source decided for samples X, for parts of them that need the same one."""
        blocks = self.columns_by_source(X.shape[1], names)
        preparation = self._preparation(X, X.shape[1], names, None, n_levels)
        if preparation is not None:
            X = preparation(X)
            blocks = [(name, about, preparation.expanded(seen)) for name, about, seen in blocks]
        done: list[Any] = [
            {"standardize": True, "none": False}.get(way, way) for way in self._scaling(statistics_of(X), blocks)
        ]
        if not isinstance(self.kernels, Sources):
            return replace(self, standardize=done[0])
        own = {name: replace(about, standardize=way) for (name, about, _), way in zip(blocks, done, strict=True)}
        return replace(self, kernels=replace(self.kernels, blocks=own))

    def _default_kernels(self, scaling: Scaling, scale: Scale, where: dict[str, Any]) -> list[Kernel]:
        """The default kernels of a source whose columns are scaled in this way."""
        if self.kernels == "one width" or (isinstance(self.kernels, Sources) and self.kernels.one_width):
            return one_gaussian(scale, **where)
        # sparse samples that are not standardised have no typical distances for Laplacian kernels
        make = count_kernels if scaling == "root" or np.isnan(scale.cityblock) else default_kernels
        return make(scale, several_sources=self.n_sources > 1, **where)

    def _fitted(self, evaluator: Evaluator, variance: Array, rank: Array, sizes: Array | None) -> FittedBank:
        """The bank with the factors of its normalisation; ``sizes`` are the means of the diagonals for "trace"."""
        normalize, factor = self.normalization, np.ones(evaluator.n_kernels)
        if normalize == "capacity":
            factor = capacity_factor(variance, rank, [kernel.source for kernel in evaluator.kernels], self.capacity)
        elif sizes is not None:
            factor = inverse(sizes)
        return FittedBank(evaluator, normalize, variance, rank, factor, self.capacity, self.cache_mb * 2**20)

    def check(self) -> None:
        """Raise an error if a parameter or a kernel is invalid; what depends on the data is checked by ``fit``."""
        if not (isinstance(self.normalize, str) and self.normalize in get_args(Normalization)):
            raise ValueError(
                f"normalize must be 'auto', 'unit', 'trace', 'capacity' or 'none', got {self.normalize!r}."
            )
        if self.normalize == "unit" and is_precomputed(self):
            raise ValueError(
                "normalize='unit' needs the norm of every test sample, which a precomputed stack does not contain; "
                "normalise the stack yourself (K / sqrt(outer(diag, diag))) or use normalize='trace'."
            )
        if not (isinstance(self.capacity, numbers.Real) and 0 <= self.capacity < np.inf):
            raise ValueError(f"capacity must be a number of at least 0, got {literal(self.capacity)}.")
        if self.made_from_data or self.standardize != "range":
            _check_standardize(self.standardize)
        if self.standardize in (True, "range") and is_precomputed(self):
            raise ValueError(f"standardize={self.standardize!r} needs features; a precomputed stack has none.")
        if not (isinstance(self.cache_mb, numbers.Real) and self.cache_mb >= 0):
            raise ValueError(f"cache_mb must be a number of at least 0, got {literal(self.cache_mb)}.")
        if not (self.made_from_data or is_precomputed(self)):
            self._listed_kernels()

    def _listed_kernels(self) -> list[Kernel]:
        """The kernels of a bank that do not depend on the data."""
        wanted = "kernels must be 'default', 'paper', 'precomputed', sources(…) or a sequence of kernels"
        if isinstance(self.kernels, str):
            if self.kernels == "paper":
                return paper_kernels()
            raise ValueError(f"{wanted}, got {self.kernels!r}; for a single kernel, pass [{self.kernels!r}].")
        if not isinstance(self.kernels, Iterable):
            raise ValueError(f"{wanted}, got {self.kernels!r}.")
        kernels = [as_kernel(spec, position) for position, spec in enumerate(self.kernels)]
        if not kernels:
            raise ValueError("kernels is empty; pass at least one kernel.")
        return kernels


def sources(blocks: Mapping[str, Columns | Source] | None = None, /, **unknown: object) -> KernelBank:
    """A bank with kernels of its own for each named block of columns.

    Parameters
    ----------
    blocks : mapping of str to columns or Source
        The columns of each source: an index or a name, a list of either, a slice, or a pattern such as ``"g_*"`` that
        selects all matching names. A :class:`~paretomkl.kernels.Source` also says whether to standardise them, and
        which kernels they have.
    **unknown : object
        Refused: settings of a source go into :class:`Source`.

    Returns
    -------
    KernelBank
        Pass it as ``kernels=``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from paretomkl import ParetoMKLClassifier
    >>> from paretomkl.kernels import sources
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> clf = ParetoMKLClassifier(C=10, kernels=sources({"sepal": "sepal *", "petal": "petal *"})).fit(X, y)
    >>> sorted(clf.source_shares_)
    ['petal', 'sepal']
    """
    if unknown or not isinstance(blocks, Mapping):
        got = f"the keyword {next(iter(unknown))!r}" if unknown else repr(blocks)
        raise TypeError(
            f"sources takes one mapping from names to columns or Source(…), got {got}; "
            "settings of a source go into Source(columns, standardize=…, kernels=…)."
        )
    if not blocks:
        raise ValueError("sources needs at least one named block of columns.")
    for name in blocks:
        if not (isinstance(name, str) and name):
            raise ValueError(f"The name of a source must be a non-empty string, got {name!r}.")
    return KernelBank(
        Sources({name: given if isinstance(given, Source) else Source(given) for name, given in blocks.items()})
    )


def is_precomputed(kernels: object) -> bool:
    """Whether X is a stack of kernels instead of features."""
    kernels = kernels.kernels if isinstance(kernels, KernelBank) else kernels
    return isinstance(kernels, str) and kernels == "precomputed"


def as_bank(kernels: KernelLike) -> KernelBank:
    if isinstance(kernels, KernelBank):
        return kernels
    if isinstance(kernels, Iterator):
        raise ValueError("kernels is an iterator, which can be read only once; pass a list.")
    return KernelBank(kernels)


def resolve_columns(given: Columns, n_features: int, names: Sequence[str] | None, owner: str) -> IntArray:
    """The positions in X of columns given by index, name or pattern; messages call the requester ``owner``."""
    if given is None:
        return np.arange(n_features)
    if isinstance(given, slice):
        given = range(n_features)[given]
    positions: list[int] = []
    for column in [given] if isinstance(given, str | numbers.Integral) else given:  # type: ignore[union-attr]
        if isinstance(column, bool | np.bool_):
            raise ValueError(f"{owner} has a Boolean mask for columns; pass their indices or names.")
        if isinstance(column, numbers.Integral):
            at = int(column)
            if not -n_features <= at < n_features:
                raise ValueError(f"{owner} asks for column {column}, but X has {n_features} columns.")
            positions.append(at % n_features)
        elif names is None:
            raise ValueError(f"{owner} names the column {literal(column)}, but X has no column names.")
        elif column in names:
            positions.append(list(names).index(str(column)))
        else:
            fitting = [k for k, name in enumerate(names) if fnmatchcase(str(name), str(column))]
            if not fitting:
                raise ValueError(f"{owner} names the column {literal(column)}, which X does not have.")
            positions += fitting
    if not positions:
        raise ValueError(f"{owner} has an empty list of columns.")
    return np.asarray(list(dict.fromkeys(positions)), dtype=np.int64)
