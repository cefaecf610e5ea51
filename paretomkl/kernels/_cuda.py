"""Kernels for NVIDIA GPUs, compiled at run time for the bank at hand by the NVRTC library that comes with PyTorch.

Evaluating a bank with PyTorch's own operations writes every kernel value to memory several times. Here each thread
reads the base value of a pair of samples once, evaluates several kernels, and adds their values up in registers. L1
distances, for which PyTorch is far from the limits of the hardware, are computed in tiles as products of matrices are.

Without NVRTC, :mod:`._device` does the same with PyTorch's operations.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from .._tools.typing import Array
from ._evaluation import EXPONENTIAL, Codes

if TYPE_CHECKING:
    from ._device import DeviceSide, Tensor

KERNELS = 8  # kernels of a thread at most
_SUMS_OF_THREAD = 72  # sums in registers at most: one for each kernel and task
_THREADS = 128
_BLOCKS = 4000  # blocks that keep any device busy
_SUM_BYTES = 2**28  # limit on partial sums
_MOST_ROWS = 32_768  # blocks of a grid in its second direction

_TYPES = """
typedef {type} T;
typedef long long wide;
"""

_DISTANCES = """
extern "C" __global__ void __launch_bounds__(256) cityblock(const T* x, const T* z, T* out, int n, int m, int d)
{
    const int SIDE = 16 * R;
    __shared__ T left[DEPTH][SIDE + 1], right[DEPTH][SIDE + 1];
    const wide top = (wide)blockIdx.y * SIDE, first = (wide)blockIdx.x * SIDE;
    const int column = threadIdx.x % 16, row = threadIdx.x / 16;
    T total[R][R];
    #pragma unroll
    for (int i = 0; i < R; i++)
        #pragma unroll
        for (int j = 0; j < R; j++)
            total[i][j] = 0;
    for (int k0 = 0; k0 < d; k0 += DEPTH) {
        for (int e = threadIdx.x; e < SIDE * DEPTH; e += 256) {
            const int i = e / DEPTH, k = e % DEPTH;
            left[k][i] = top + i < n && k0 + k < d ? x[(top + i) * d + k0 + k] : (T)0;
            right[k][i] = first + i < m && k0 + k < d ? z[(first + i) * d + k0 + k] : (T)0;
        }
        __syncthreads();
        #pragma unroll
        for (int k = 0; k < DEPTH; k++) {
            T a[R], b[R];
            #pragma unroll
            for (int i = 0; i < R; i++) {
                a[i] = left[k][row + 16 * i];
                b[i] = right[k][column + 16 * i];
            }
            #pragma unroll
            for (int i = 0; i < R; i++)
                #pragma unroll
                for (int j = 0; j < R; j++)
                    total[i][j] += ABS(a[i] - b[j]);
        }
        __syncthreads();
    }
    #pragma unroll
    for (int i = 0; i < R; i++)
        #pragma unroll
        for (int j = 0; j < R; j++)
            if (top + row + 16 * i < n && first + column + 16 * j < m)
                out[(top + row + 16 * i) * m + first + column + 16 * j] = total[i][j];
}
"""

_EVALUATE = """
struct Given {{
    const T *x, *z, *x_centred, *z_centred, *x_squares, *z_squares, *x_scale, *z_scale;
    int d, x_rows, z_rows; // samples from one row of squares and scales to the next
    T rate[COUNT], offset[COUNT];
}};

// The kernels between samples i and j, given their base value d.
__device__ __forceinline__ void evaluate(const Given& g, int i, int j, T d, T* v)
{{
    {distance}
    {values}
}}
"""

_SQUARED = """const T total = g.x_centred[i] + g.z_centred[j];
    d = total - 2 * d;
    if (d < (T)LOSSY * total) {
        d = 0;
        for (int k = 0; k < g.d; k++) {
            const T off = g.x[(wide)i * g.d + k] - g.z[(wide)j * g.d + k];
            d += off * off;
        }
    }"""

_PARAMETERS = """const T* base, const T* x, const T* z, const T* x_centred, const T* z_centred, const T* x_squares,
    const T* z_squares, const T* x_scale, const T* z_scale, const T* numbers, int d, int n, int m, int x_rows,
    int z_rows"""
_PACKED = """Given g = {x, z, x_centred, z_centred, x_squares, z_squares, x_scale, z_scale, d, x_rows, z_rows};
    #pragma unroll
    for (int k = 0; k < COUNT; k++) {
        g.rate[k] = numbers[k];
        g.offset[k] = numbers[COUNT + k];
    }"""

_SUMS = f"""
extern "C" __global__ void __launch_bounds__(THREADS) sums({_PARAMETERS},
    const double* steps, double* out, int n_tasks, int per_chunk)
{{
    {_PACKED}
    const int j = blockIdx.x * THREADS + threadIdx.x, first = blockIdx.z * TASKS;
    if (j >= m) return;
    double total[COUNT][TASKS];
    #pragma unroll
    for (int k = 0; k < COUNT; k++)
        #pragma unroll
        for (int t = 0; t < TASKS; t++)
            total[k][t] = 0;
    const int begin = blockIdx.y * per_chunk, last = min(n, begin + per_chunk);
    T next = begin < last ? base[(wide)begin * m + j] : (T)0; // read before it is needed, since memory is slow
    for (int i = begin; i < last; i++) {{
        const T d = next;
        if (i + 1 < last) next = base[(wide)(i + 1) * m + j];
        double s[TASKS];
        bool any = false;
        #pragma unroll
        for (int t = 0; t < TASKS; t++) {{
            s[t] = first + t < n_tasks ? steps[(wide)i * n_tasks + first + t] : 0.0;
            any |= s[t] != 0.0;
        }}
        if (!any) continue;
        T v[COUNT];
        evaluate(g, i, j, d, v);
        double value[COUNT];
        #pragma unroll
        for (int k = 0; k < COUNT; k++) value[k] = v[k];
        #pragma unroll
        for (int t = 0; t < TASKS; t++) // also where the step is zero: a branch takes longer
            #pragma unroll
            for (int k = 0; k < COUNT; k++) total[k][t] += s[t] * value[k];
    }}
    #pragma unroll
    for (int k = 0; k < COUNT; k++)
        #pragma unroll
        for (int t = 0; t < TASKS; t++)
            if (first + t < n_tasks)
                out[(((wide)blockIdx.y * COUNT + k) * n_tasks + first + t) * m + j] = total[k][t];
}}
"""

_COMBINED = f"""
extern "C" __global__ void __launch_bounds__(THREADS) combined({_PARAMETERS}, const T* weight, T* out, int adding)
{{
    {_PACKED}
    const int j = blockIdx.x * THREADS + threadIdx.x;
    if (j >= m) return;
    for (int i = blockIdx.y; i < n; i += gridDim.y) {{
        T v[COUNT];
        evaluate(g, i, j, base[(wide)i * m + j], v);
        T total = adding ? out[(wide)i * m + j] : (T)0;
        #pragma unroll
        for (int k = 0; k < COUNT; k++)
            total += weight[k] == 0 ? (T)0 : weight[k] * v[k];
        out[(wide)i * m + j] = total;
    }}
}}
"""


def sources_of(codes: Codes, metric: str, kernels: list[int], double: bool) -> dict[str, str]:
    """The CUDA sources of ``sums`` and ``combined`` for some kernels of one base; they depend on their forms only.

    That of ``sums`` needs TASKS, the number of tasks of a thread.
    """
    norms = sorted({int(codes.norm[m]) for m in kernels if codes.kind[m] != EXPONENTIAL})
    lines = [
        f"const T q{norm} = g.x_squares[(wide){norm} * g.x_rows + i] + g.z_squares[(wide){norm} * g.z_rows + j];"
        for norm in norms
    ]
    for k, m in enumerate(kernels):
        if codes.kind[m] == EXPONENTIAL:
            lines.append(f"v[{k}] = EXP(g.rate[{k}] * d);")
        else:
            lines.append(f"const T a{k} = g.rate[{k}] * (q{int(codes.norm[m])} - d) + g.offset[{k}];")
            lines.append(f"v[{k}] = {' * '.join([f'a{k}'] * int(codes.degree[m]))};")
        if codes.scaled[m]:
            lines.append(f"v[{k}] *= g.x_scale[(wide){m} * g.x_rows + i] * g.z_scale[(wide){m} * g.z_rows + j];")
    evaluate = _EVALUATE.format(distance=_SQUARED if metric == "sqeuclidean" else "", values="\n    ".join(lines))
    named = {"COUNT": len(kernels), "THREADS": _THREADS} | _of_precision(double)
    shared = _head(named, double) + evaluate
    return {"sums": shared + _SUMS, "combined": shared + _COMBINED}


def numbers_of(codes: Codes, kernels: list[int], double: bool) -> Array:
    """The rates and offsets that the functions of :func:`sources_of` expect, (2, n_kernels)."""
    exponential = codes.kind[kernels] == EXPONENTIAL
    # in single precision, exp(x) is 2^(x log₂ e), for which there is an instruction
    rate = np.where(exponential, -1.0 if double else -np.log2(np.e), 0.5) * codes.rate[kernels]
    return np.array([rate, codes.offset[kernels]])


def tasks_at_once(n_tasks: int, n_kernels: int) -> int:
    """Tasks whose sums a thread keeps: the same number for all threads, as far as possible."""
    most = max(1, _SUMS_OF_THREAD // n_kernels)
    return -(-n_tasks // -(-n_tasks // most))


def source_of_distances(double: bool) -> str:
    """The CUDA source of ``cityblock``."""
    return _head({"DEPTH": 8 if double else 16, "R": 4 if double else 8} | _of_precision(double), double) + _DISTANCES


def _of_precision(double: bool) -> dict[str, object]:
    names = {"EXP": "exp", "ABS": "fabs"} if double else {"EXP": "exp2f", "ABS": "fabsf"}
    return {**names, "LOSSY": 1e-7 if double else 1e-4}


def _head(named: dict[str, object], double: bool) -> str:
    defined = "".join(f"#define {name} {value}\n" for name, value in named.items())
    return defined + _TYPES.format(type="double" if double else "float")


def compiled(source: str, names: tuple[str, ...]) -> dict[str, Any]:
    """The functions of a CUDA source, for the current device."""
    return _compiled_on(torch.cuda.current_device(), source, names)


@cache
def _compiled_on(_device: int, source: str, names: tuple[str, ...]) -> dict[str, Any]:
    from torch.cuda import _utils as utils

    # the only ways to find the library that PyTorch ships and to load what it compiles
    find = getattr(utils, "_get_gpu_rtc_library", None) or utils._get_nvrtc_library  # noqa: SLF001
    library, program = find(), ctypes.c_void_p()

    def check(status: int) -> None:
        if status:
            size = ctypes.c_size_t()
            library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
            log = ctypes.create_string_buffer(max(1, size.value))
            library.nvrtcGetProgramLog(program, log)
            raise RuntimeError(f"NVRTC failed with status {status}: {log.value.decode(errors='replace')}")

    torch.cuda.init()
    major, minor = torch.cuda.get_device_capability()
    check(library.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"paretomkl.cu", 0, None, None))
    options = (ctypes.c_char_p * 1)(f"--gpu-architecture=sm_{major}{minor}".encode())
    check(library.nvrtcCompileProgram(program, 1, options))
    size = ctypes.c_size_t()
    check(library.nvrtcGetCUBINSize(program, ctypes.byref(size)))
    binary = ctypes.create_string_buffer(size.value)
    check(library.nvrtcGetCUBIN(program, binary))
    library.nvrtcDestroyProgram(ctypes.byref(program))
    loaded = utils._cuda_load_module(binary.raw, list(names))  # noqa: SLF001
    return {name: loaded[name] for name in names}


def cityblock(x: Tensor, z: Tensor) -> Tensor:
    """‖x_i − z_j‖_1 between the rows of two matrices."""
    (n, d), m, double = x.shape, len(z), x.dtype == torch.float64
    out = torch.empty((n, m), dtype=x.dtype, device=x.device)
    side, distances = 64 if double else 128, compiled(source_of_distances(double), ("cityblock",))["cityblock"]
    for top in range(0, n, side * _MOST_ROWS):
        end = min(n, top + side * _MOST_ROWS)
        grid = (-(-m // side), -(-(end - top) // side), 1)
        distances(grid=grid, block=(256, 1, 1), args=[x[top:end], z, out[top:end], end - top, m, d])
    return out


class CudaBase:
    """Some kernels of one base, at most KERNELS, in one precision."""

    def __init__(self, codes: Codes, metric: str, base: int, kernels: list[int], double: bool):
        self.base, self.kernels = base, kernels
        self.index = torch.tensor(kernels, device="cuda")
        kind = torch.float64 if double else torch.float32
        self._numbers = torch.from_numpy(numbers_of(codes, kernels, double)).to("cuda", kind)
        self._sources = sources_of(codes, metric, kernels, double)
        self._combined = compiled(self._sources["combined"], ("combined",))["combined"]

    def _given(self, values: Tensor, left: DeviceSide, right: DeviceSide) -> list[Any]:
        b, x = self.base, left.features[self.base]
        parts = [x, right.features[b], left.centred_squares[b], right.centred_squares[b]]
        parts += [left.squares, right.squares, left.scale, right.scale, self._numbers]
        return [values, *parts, x.shape[1], len(left), len(right), left.scale.stride(0), right.scale.stride(0)]

    def sums(self, values: Tensor, left: DeviceSide, right: DeviceSide, steps: Tensor) -> Tensor:
        """Σ_i steps_ti k_m(x_i, z_j) in double precision, (n_kernels, n_tasks, n_right), from base values."""
        n, m, n_tasks, count = len(left), len(right), len(steps), len(self.kernels)
        tasks = tasks_at_once(n_tasks, count)
        wide, deep = -(-m // _THREADS), -(-n_tasks // tasks)
        chunks = min(-(-_BLOCKS // (wide * deep)), -(-n // 32), max(1, _SUM_BYTES // (8 * count * n_tasks * m)))
        per_chunk = -(-n // chunks)
        chunks = -(-n // per_chunk)
        out = torch.empty((chunks, count, n_tasks, m), dtype=torch.float64, device=values.device)
        given = [*self._given(values, left, right), steps.T.contiguous(), out, n_tasks, per_chunk]
        source = f"#define TASKS {tasks}\n{self._sources['sums']}"
        compiled(source, ("sums",))["sums"](grid=(wide, chunks, deep), block=(_THREADS, 1, 1), args=given)
        return out[0] if chunks == 1 else out.sum(dim=0)

    def combine(
        self, values: Tensor, left: DeviceSide, right: DeviceSide, weight: Tensor, out: Tensor, adding: bool
    ) -> None:
        """Write Σ_m weight_m k_m(x_i, z_j) to ``out`` (n_left, n_right), or add it."""
        given = [*self._given(values, left, right), weight[self.index], out, int(adding)]
        grid = (-(-len(right) // _THREADS), min(len(left), _MOST_ROWS), 1)
        self._combined(grid=grid, block=(_THREADS, 1, 1), args=given)
