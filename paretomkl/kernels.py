"""Base kernels and banks of them.

A kernel is a small frozen description (``Gaussian(sigma=2.0)``); a :class:`KernelBank` turns a list of them into
what the solvers need without ever holding one Gram matrix per kernel: combined Gram matrices Σ_m θ_m K_m, the
quadratic forms v'K_m v of many tasks, and test-time kernels.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar

import numpy as np

from ._kernel_rows import EXPONENTIAL, LINEAR, POLYNOMIAL, VALUE, combine_rows
from ._typing import AnyArray, Array, IntArray

Columns = Any  # an index, a name, or a sequence of either; None means all columns

PAPER_SIGMAS = tuple(2.0**k for k in (-7, -5, -3, -1, 0, 1, 3, 5, 7))
MAX_DOUBLINGS = 14  # squarings in a row from one exp: the error 2^14 · 1e-16 stays near 1e-12
PANEL_BYTES = 32 * 2**20  # how much of the base matrices is made at a time when they are not kept


# ------------------------------------------------------------------------------------------------ kernels
@dataclass(frozen=True)
class Kernel:
    """What all kernels share: the columns of X they see (``None``: all of them)."""

    columns: Columns = field(default=None, kw_only=True)
    metric: ClassVar[str] = "sqeuclidean"  # the base matrix the kernel is computed from

    def __str__(self) -> str:
        seen = "" if self.columns is None else f" on {self.columns!r}"
        # the first parameter always, the others where they are not the default
        given = [f for f in fields(self) if f.name != "columns"]
        told = [f.name for i, f in enumerate(given) if i == 0 or getattr(self, f.name) != f.default]
        parameters = ", ".join(f"{name}={getattr(self, name):g}" for name in told)
        return f"{type(self).__name__.lower()}{f'({parameters})' if parameters else ''}{seen}"


@dataclass(frozen=True)
class Linear(Kernel):
    """k(x, z) = x'z"""


@dataclass(frozen=True)
class Polynomial(Kernel):
    """k(x, z) = (γ x'z + c)^degree"""

    degree: int = 2
    gamma: float = 1.0
    coef0: float = 1.0

    def __post_init__(self) -> None:
        if not (isinstance(self.degree, numbers.Integral) and self.degree >= 1):
            raise ValueError(f"A polynomial kernel needs a whole degree of at least 1, got degree={self.degree!r}.")
        _require_positive(self, "gamma")
        if not (np.isfinite(self.coef0) and self.coef0 >= 0):
            raise ValueError(
                f"A polynomial kernel needs coef0 >= 0 to be positive semidefinite, got coef0={self.coef0!r}."
            )


@dataclass(frozen=True)
class Gaussian(Kernel):
    """k(x, z) = exp(−‖x − z‖² / 2σ²)."""

    sigma: float = 1.0

    def __post_init__(self) -> None:
        _require_positive(self, "sigma")
        if not 1e-150 < self.sigma < 1e150:
            raise ValueError(f"A gaussian kernel needs sigma between 1e-150 and 1e150, got sigma={self.sigma!r}.")

    @property
    def rate(self) -> float:
        return 0.5 / self.sigma**2


@dataclass(frozen=True)
class Laplacian(Kernel):
    """k(x, z) = exp(−γ ‖x − z‖_1)."""

    gamma: float = 1.0
    metric: ClassVar[str] = "cityblock"

    def __post_init__(self) -> None:
        _require_positive(self, "gamma")

    @property
    def rate(self) -> float:
        return self.gamma


@dataclass(frozen=True)
class Cosine(Kernel):
    """k(x, z) = x'z / (‖x‖ ‖z‖), and zero where x or z is zero

    Inner products are made from distances: beside a vector c times as long, one keeps 16 − log10(c) digits.
    """


@dataclass(frozen=True)
class Custom(Kernel):
    """A kernel given as a function: ``function(X, Z)`` returns the matrix of shape (len(X), len(Z))."""

    function: Callable[[Array, Array], Array] = field(kw_only=True)
    metric: ClassVar[str] = "custom"

    def __str__(self) -> str:
        name = getattr(self.function, "__name__", None) or str(self.function)
        return name if self.columns is None else f"{name} on {self.columns!r}"

    def values(self, X: Array, Z: Array) -> Array:
        K = np.asarray(self.function(X, Z), dtype=np.float64)
        if K.shape != (len(X), len(Z)):
            raise ValueError(
                f"Kernel {self} must return a matrix of shape ({len(X)}, {len(Z)}) for {len(X)} and {len(Z)} samples, "
                f"got shape {K.shape}."
            )
        if not np.isfinite(K).all():
            raise ValueError(f"Kernel {self} returned NaN or infinite values.")
        return K

    def diagonal(self, X: Array) -> Array:
        if hasattr(self.function, "diag"):  # the kernel objects of scikit-learn's Gaussian processes
            return np.asarray(self.function.diag(X), dtype=np.float64)
        return np.concatenate([np.diag(self.values(X[i : i + 64], X[i : i + 64])) for i in range(0, len(X), 64)])


def _require_positive(kernel: Kernel, name: str) -> None:
    value: Any = getattr(kernel, name)
    if not (isinstance(value, numbers.Real) and 0 < float(value) < np.inf):
        kind = type(kernel).__name__
        article = "An" if kind[0] in "AEIOU" else "A"
        raise ValueError(f"{article} {kind.lower()} kernel needs a positive {name}, got {name}={value!r}.")


def _gaussian(gamma: float | None = None, **parameters: Any) -> Gaussian:
    """Gaussian by σ, or by scikit-learn's γ = 1 / 2σ²."""
    if gamma is not None:
        if "sigma" in parameters:
            raise ValueError("A Gaussian kernel takes sigma or gamma = 1 / 2 sigma², not both.")
        if not (isinstance(gamma, numbers.Real) and gamma > 0):
            raise ValueError(f"A Gaussian kernel needs a positive gamma, got gamma={gamma!r}.")
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
    """The eleven kernels of the paper: linear, quadratic, and Gaussians of nine widths."""
    return [Linear(), Polynomial(degree=2), *(Gaussian(sigma) for sigma in PAPER_SIGMAS)]


def as_kernel(spec: Any, position: int = 0) -> Kernel:
    """A kernel from an object, a name, a callable, or a pair of one of the latter two and a dict of parameters."""
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
            raise ValueError(f"Kernel {position} has the unknown name {what!r}; known are {sorted(NAMED_KERNELS)}.")
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
        raise ValueError(f"Kernel {position} is the class {what.__name__}; write {what.__name__}(…) for a kernel.")
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
@dataclass
class KernelBank:
    """An ordered list of base kernels with one normalisation.

    Parameters
    ----------
    kernels : "default", "precomputed" or a sequence, default="default"
        ``"default"`` is the bank of the paper (:func:`paper_kernels`). A sequence may mix kernel objects, names,
        callables ``f(X, Z)``, scikit-learn's kernel objects, and pairs ``(name or callable, parameters)``; the
        parameter ``columns`` (index, name, or list of either) restricts a kernel to some columns of X. With
        ``"precomputed"`` X is a stack of shape (n, n, n_kernels).
    normalize : {"auto", "unit", "trace", "none"}, default="auto"
        ``"unit"`` gives every sample norm one, k(x,z) / √(k(x,x) k(z,z)); ``"trace"`` divides each kernel by the mean
        of its training diagonal; ``"auto"`` is ``"unit"``, and ``"none"`` for precomputed stacks, whose test-time
        values do not tell the norm of a test sample.
    cache_mb : float, default=512
        Up to this size the base matrices (distances, callables) are kept; beyond it they are made anew, some rows
        at a time, whenever they are needed.
    """

    kernels: Any = "default"
    normalize: str = "auto"
    cache_mb: float = 512.0

    def fit(self, X: AnyArray, feature_names: Sequence[str] | None = None) -> FittedBank:
        """Resolve names and columns for data X of shape (n, n_features), or a stack (n, n, n_kernels)."""
        if self.normalize not in ("auto", "unit", "trace", "none"):
            raise ValueError(f"normalize must be 'auto', 'unit', 'trace' or 'none', got {self.normalize!r}.")
        if isinstance(self.kernels, str) and self.kernels == "precomputed":
            return FittedBank.of_stack(np.asarray(X), self)
        if isinstance(self.kernels, str):
            if self.kernels != "default":
                raise ValueError(
                    f"kernels must be 'default', 'precomputed' or a sequence of kernels, got {self.kernels!r}; "
                    f"for one kernel write [{self.kernels!r}]."
                )
            kernels = paper_kernels()
        elif isinstance(self.kernels, Iterable):
            kernels = [as_kernel(spec, position) for position, spec in enumerate(self.kernels)]
        else:
            raise ValueError(
                f"kernels must be 'default', 'precomputed' or a sequence of kernels, got {self.kernels!r}."
            )
        if not kernels:
            raise ValueError("kernels is empty; give at least one kernel.")
        columns = [_resolve_columns(kernel, X.shape[1], feature_names) for kernel in kernels]
        return FittedBank(kernels, columns, np.asarray(X, dtype=np.float64), self)


def as_bank(kernels: Any) -> KernelBank:
    return kernels if isinstance(kernels, KernelBank) else KernelBank(kernels)


def _resolve_columns(kernel: Kernel, n_features: int, names: Sequence[str] | None) -> IntArray:
    """The positions of a kernel's columns in X."""
    if kernel.columns is None:
        return np.arange(n_features)
    given = kernel.columns
    if isinstance(given, slice):
        given = range(n_features)[given]
    if isinstance(given, (str, numbers.Integral)):
        given = [given]
    positions = []
    for column in given:
        if isinstance(column, (bool, np.bool_)):
            raise ValueError(f"Kernel {kernel} has a mask for columns; give their indices or names.")
        if isinstance(column, numbers.Integral):
            if not -n_features <= int(column) < n_features:
                raise ValueError(f"Kernel {kernel} asks for column {column}, but X has {n_features} columns.")
            positions.append(int(column) % n_features)
        elif names is None:
            raise ValueError(f"Kernel {kernel} names the column {column!r}, but X has no column names.")
        elif column not in names:
            raise ValueError(f"Kernel {kernel} names the column {column!r}, which X does not have.")
        else:
            positions.append(list(names).index(column))
    if not positions:
        raise ValueError(f"Kernel {kernel} has an empty list of columns.")
    return np.asarray(positions, dtype=np.int64)


@dataclass(frozen=True)
class Side:
    """One set of samples as the rows or columns of Gram matrices.

    features: per base the samples as its metric wants them; squares (n_bases, n): squared norms; scale
    (n_kernels, n): normalisation factors; and for squared distances the norms of the centred features.
    """

    features: list[AnyArray]
    centred_squares: list[Array]
    squares: Array
    scale: Array

    def __len__(self) -> int:
        return self.scale.shape[1]


class FittedBank:
    """A bank bound to training data: knows its bases, the order of its kernels, and its normalisation."""

    def __init__(self, kernels: list[Kernel], columns: list[IntArray], X: Array, bank: KernelBank):
        self.kernels = kernels
        self.normalize = "unit" if bank.normalize == "auto" else bank.normalize
        self.cache_bytes = bank.cache_mb * 2**20
        self.precomputed = False
        self.names = [str(kernel) for kernel in kernels]
        # kernels that see the same columns through the same metric share one base matrix
        keys: dict[tuple, int] = {}
        base = np.empty(len(kernels), dtype=np.int64)
        self.base_columns: list[IntArray] = []
        self.base_metric: list[str | Custom] = []
        for m, (kernel, seen) in enumerate(zip(kernels, columns, strict=True)):
            key: tuple = (kernel.metric, tuple(seen)) if not isinstance(kernel, Custom) else (m,)
            if key not in keys:
                keys[key] = len(keys)
                self.base_columns.append(seen)
                self.base_metric.append(kernel if isinstance(kernel, Custom) else kernel.metric)
            base[m] = keys[key]
        self.base = base
        self.centre = [X[:, seen].mean(axis=0) for seen in self.base_columns]
        self.program = _compile(kernels, base, self.normalize)
        self.trace_scale = np.ones(len(kernels))
        if self.normalize == "trace":
            means = np.array([diagonal.mean() for diagonal in self._diagonals(X, self.side(X))])
            self.trace_scale = _inverse_root(means)

    @classmethod
    def of_stack(cls, stack: AnyArray, bank: KernelBank) -> FittedBank:
        """A precomputed stack of shape (n, n, n_kernels)."""
        if bank.normalize == "unit":
            raise ValueError(
                "normalize='unit' needs the norm of every test sample, which a precomputed stack does not hold; "
                "normalise the stack yourself (K / sqrt(outer(diag, diag))) or use normalize='trace'."
            )
        self = cls.__new__(cls)
        n_kernels = stack.shape[2]
        self.kernels = []
        self.normalize = "none" if bank.normalize == "auto" else bank.normalize
        self.cache_bytes = 0.0  # the stack is there already; a copy of it would double the memory
        self.precomputed = True
        self.names = [f"{m} of the precomputed stack" for m in range(n_kernels)]
        self.base_metric = ["precomputed"] * n_kernels
        self.base_columns = []
        identity = np.arange(n_kernels)
        self.base = identity
        zeros, ones = np.zeros(n_kernels), np.ones(n_kernels, dtype=np.int64)
        scaled = np.full(n_kernels, int(self.normalize == "trace"))
        self.program = (
            identity,
            np.full(n_kernels, VALUE),
            identity,
            zeros,
            zeros,
            ones,
            -ones,
            0 * ones,
            scaled,
            n_kernels,
        )
        self.trace_scale = np.ones(n_kernels)
        if self.normalize == "trace":
            self.trace_scale = _inverse_root(np.einsum("iim->m", stack) / len(stack))
        return self

    @property
    def n_kernels(self) -> int:
        return len(self.names)

    def side(self, X: AnyArray) -> Side:
        """Prepare samples X (n, n_features), or a stack of any shape (n, n', n_kernels), for use in panels."""
        if self.precomputed:
            n = len(X)
            scale = np.tile(self.trace_scale[:, None], (1, n))
            return Side([X], [], np.zeros((self.n_kernels, 1)), scale)
        X = np.asarray(X, dtype=np.float64)
        features: list[AnyArray] = []
        centred_squares: list[Array] = []
        squares = np.zeros((len(self.base_metric), len(X)))
        for b, (metric, seen) in enumerate(zip(self.base_metric, self.base_columns, strict=True)):
            part = X[:, seen]
            if metric == "sqeuclidean":
                squares[b] = np.einsum("ij,ij->i", part, part)
                part = part - self.centre[b]  # distances keep their digits when the data lie far from the origin
                centred_squares.append(np.einsum("ij,ij->i", part, part))
            else:
                centred_squares.append(squares[b])
            features.append(np.ascontiguousarray(part))
        side = Side(features, centred_squares, squares, np.empty((self.n_kernels, len(X))))
        diagonals = self._diagonals(X, side)
        for m, kernel in enumerate(self.kernels):
            if not np.isfinite(diagonals[m]).all():
                raise ValueError(f"Kernel {kernel} leaves the range of numbers on these data; scale the features.")
            if isinstance(kernel, Cosine):
                side.scale[m] = _inverse_root(squares[self.base[m]])
            elif self.normalize == "unit":
                side.scale[m] = _inverse_root(diagonals[m])
            else:
                side.scale[m] = self.trace_scale[m]
        return side

    def side_of_columns(self, n: int) -> Side:
        """The columns of a precomputed stack, which has no samples of its own on that side."""
        scale = np.tile(self.trace_scale[:, None], (1, n))
        return Side([], [], np.zeros((self.n_kernels, 1)), scale)

    def _diagonals(self, X: Array, side: Side) -> list[Array]:
        """k_m(x, x) of every sample, kernel by kernel."""
        diagonals = []
        for m, kernel in enumerate(self.kernels):
            square = side.squares[self.base[m]]
            if isinstance(kernel, Polynomial):
                diagonals.append((kernel.gamma * square + kernel.coef0) ** kernel.degree)
            elif isinstance(kernel, Custom):
                diagonals.append(kernel.diagonal(X[:, self.base_columns[self.base[m]]]))
            elif isinstance(kernel, Linear):
                diagonals.append(square)
            else:
                diagonals.append(np.ones(len(X)))
        return diagonals

    def panel(self, left: Side, rows: IntArray, right: Side, columns: IntArray, out: Array | None = None) -> Array:
        """Base matrices between some samples of each side, (n_bases, n_rows, n_columns)."""
        if out is None:
            out = np.empty((len(self.base_metric), len(rows), len(columns)))
        if self.precomputed:
            out[...] = np.moveaxis(left.features[0][np.ix_(rows, columns)], 2, 0)
            return out
        for b, metric in enumerate(self.base_metric):
            x, z = left.features[b][rows], right.features[b][columns]
            if metric == "sqeuclidean":
                np.dot(x, z.T, out=out[b])
                out[b] *= -2
                out[b] += left.centred_squares[b][rows][:, None]
                out[b] += right.centred_squares[b][columns]
                np.maximum(out[b], 0, out=out[b])
                _refine_small(out[b], x, z, left.centred_squares[b][rows], right.centred_squares[b][columns])
                if left is right:
                    out[b][rows[:, None] == columns] = 0  # a sample is at distance zero from itself
            elif isinstance(metric, Custom):
                out[b] = metric.values(x, z)
            else:
                out[b] = _distances(x, z, metric)
        return out

    def base_matrix(self, base: int, side: Side, samples: IntArray) -> Array:
        """One base matrix among some samples."""
        metric = self.base_metric[base]
        if self.precomputed:
            return np.ascontiguousarray(side.features[0][np.ix_(samples, samples)][:, :, base])
        part = side.features[base][samples]
        return metric.values(part, part) if isinstance(metric, Custom) else _distances(part, part, metric)

    def name_of_base(self, base: int) -> str:
        return self.names[int(np.flatnonzero(self.base == base)[0])]

    def cross(self, left: Side, right: Side, theta: Array) -> Array:
        """Σ_m θ_m K_m between two sets of samples, (n_left, n_right)."""
        return self.cross_all(left, right, theta[None])[0]

    def cross_all(self, left: Side, right: Side, thetas: Array) -> Array:
        """The same for several θ, (n_thetas, n_left, n_right); base matrices are made once for all of them."""
        out = np.empty((len(thetas), len(left), len(right)))
        columns = np.arange(len(right))
        step = max(1, int(PANEL_BYTES // (8 * len(self.base_metric) * max(len(right), 1))))
        for first in range(0, len(left), step):
            rows = np.arange(first, min(first + step, len(left)))
            panel = self.panel(left, rows, right, columns).reshape(-1)
            for theta, combined in zip(thetas, out, strict=True):
                combine_rows(
                    self.program,
                    theta,
                    panel,
                    first,
                    len(rows),
                    first,
                    first + len(rows),
                    False,
                    (np.arange(len(left)), left.squares, left.scale),
                    (columns, right.squares, right.scale),
                    combined.reshape(-1),
                    0,
                )
        return out


def _refine_small(distances: Array, x: Array, z: Array, x_squares: Array, z_squares: Array) -> None:
    """Compute anew, from the features, squared distances that lost most digits as x'x − 2x'z + z'z (in place)."""
    for first in range(0, len(x), 256):
        part = slice(first, first + 256)
        i, j = np.nonzero(distances[part] < 1e-7 * (x_squares[part, None] + z_squares))
        for at in range(0, len(i), 4096):  # few, unless an outlier makes all others seem close to each other
            row, column = first + i[at : at + 4096], j[at : at + 4096]
            difference = x[row] - z[column]
            distances[row, column] = np.einsum("ij,ij->i", difference, difference)


def _distances(x: Array, z: Array, metric: str) -> Array:
    from scipy.spatial.distance import cdist  # here: it is slow to import and most banks do without

    return cdist(x, z, metric)


def _inverse_root(diagonal: Array) -> Array:
    """1/√d, and zero where d is zero: a sample of norm zero stays at the origin of feature space."""
    with np.errstate(divide="ignore"):
        return np.where(diagonal > 0, 1 / np.sqrt(np.maximum(diagonal, 1e-300)), 0.0)


def _compile(kernels: list[Kernel], base: IntArray, normalize: str) -> tuple:
    """The arrays the compiled rows are driven by; ``order`` puts the source of a squaring before its result."""
    n = len(kernels)
    kind, degree = np.full(n, VALUE), np.ones(n, dtype=np.int64)
    gamma, coef0 = np.zeros(n), np.zeros(n)
    parent, doublings = np.full(n, -1), np.zeros(n, dtype=np.int64)
    scaled = np.full(n, int(normalize != "none"))
    for m, kernel in enumerate(kernels):
        if isinstance(kernel, (Linear, Cosine)):
            kind[m] = LINEAR
            scaled[m] = scaled[m] or isinstance(kernel, Cosine)
        elif isinstance(kernel, Polynomial):
            kind[m], degree[m], gamma[m], coef0[m] = POLYNOMIAL, kernel.degree, kernel.gamma, kernel.coef0
        elif isinstance(kernel, (Gaussian, Laplacian)):
            kind[m], gamma[m] = EXPONENTIAL, kernel.rate
            scaled[m] = 0  # its diagonal is one already
    order = np.lexsort((gamma, kind))  # exponentials by rising rate: a kernel is squared from a wider one
    depth = np.zeros(n, dtype=np.int64)
    last_of_chain: dict[tuple[int, float], int] = {}  # by base and mantissa: such rates differ by powers of two
    for m in order:
        if kind[m] != EXPONENTIAL:
            continue
        mantissa, exponent = math.frexp(gamma[m])
        k = last_of_chain.get((int(base[m]), mantissa))
        if k is not None:
            steps = exponent - math.frexp(gamma[k])[1]
            if steps >= 1 and depth[k] + steps <= MAX_DOUBLINGS:
                parent[m], doublings[m], depth[m] = k, steps, depth[k] + steps
        last_of_chain[int(base[m]), mantissa] = int(m)
    return order, kind, base, gamma, coef0, degree, parent, doublings, scaled, int(base.max()) + 1
