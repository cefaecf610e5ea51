"""Names for the types that recur in annotations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from ..protocols import Solver

Array: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
AnyArray: TypeAlias = NDArray[Any]

TaskScale: TypeAlias = Literal["none", "samples"]
MultiClass: TypeAlias = Literal["one-vs-one", "one-vs-rest"]
ClassWeight: TypeAlias = "Mapping[Any, float] | Literal['balanced'] | None"
SolverLike: TypeAlias = "Literal['auto', 'cut-pool', 'bcd', 'tseng'] | Solver"
