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

import torch

from ._evaluation import EXPONENTIAL, Codes

if TYPE_CHECKING:
    from ._device import DeviceSide, Tensor

KERNELS = 8  # kernels of a thread at most: their sums stay in registers
_TASKS = 4  # tasks of a thread
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
    const T *base, *x, *z, *x_centred, *z_centred, *x_squares, *z_squares, *x_scale, *z_scale;
    int d, n, m;
}};

__device__ __forceinline__ void evaluate(const Given& g, int i, int j, T* v)
{{
    T d = g.base[(wide)i * g.m + j];
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
    const T* z_squares, const T* x_scale, const T* z_scale, int d, int n, int m"""
_PACKED = "const Given g = {base, x, z, x_centred, z_centred, x_squares, z_squares, x_scale, z_scale, d, n, m};"

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
    const int last = min(n, (int)(blockIdx.y + 1) * per_chunk);
    for (int i = blockIdx.y * per_chunk; i < last; i++) {{
        double s[TASKS];
        bool any = false;
        #pragma unroll
        for (int t = 0; t < TASKS; t++) {{
            s[t] = first + t < n_tasks ? steps[(wide)(first + t) * n + i] : 0.0;
            any |= s[t] != 0.0;
        }}
        if (!any) continue;
        T v[COUNT];
        evaluate(g, i, j, v);
        #pragma unroll
        for (int k = 0; k < COUNT; k++) {{
            const double value = v[k];
            #pragma unroll
            for (int t = 0; t < TASKS; t++)
                total[k][t] += s[t] * value;
        }}
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
        evaluate(g, i, j, v);
        T total = adding ? out[(wide)i * m + j] : (T)0;
        #pragma unroll
        for (int k = 0; k < COUNT; k++)
            total += weight[k] == 0 ? (T)0 : weight[k] * v[k];
        out[(wide)i * m + j] = total;
    }}
}}
"""


def sources_of(codes: Codes, metric: str, kernels: list[int], double: bool) -> str:
    """The CUDA source of ``sums`` and ``combined`` for some kernels of one base."""
    norms = sorted({int(codes.norm[m]) for m in kernels if codes.kind[m] != EXPONENTIAL})
    lines = [
        f"const T q{norm} = g.x_squares[(wide){norm} * g.n + i] + g.z_squares[(wide){norm} * g.m + j];"
        for norm in norms
    ]
    for k, m in enumerate(kernels):
        rate, offset = (f"(T){float(value)!r}" for value in (codes.rate[m], codes.offset[m]))
        if codes.kind[m] == EXPONENTIAL:
            lines.append(f"v[{k}] = EXP(-{rate} * d);")
        else:
            lines.append(f"const T a{k} = (T)0.5 * {rate} * (q{int(codes.norm[m])} - d) + {offset};")
            lines.append(f"v[{k}] = {' * '.join([f'a{k}'] * int(codes.degree[m]))};")
        if codes.scaled[m]:
            lines.append(f"v[{k}] *= g.x_scale[(wide){m} * g.n + i] * g.z_scale[(wide){m} * g.m + j];")
    evaluate = _EVALUATE.format(distance=_SQUARED if metric == "sqeuclidean" else "", values="\n    ".join(lines))
    named = {"COUNT": len(kernels), "TASKS": _TASKS, "THREADS": _THREADS} | _of_precision(double)
    return _head(named, double) + evaluate + _SUMS + _COMBINED


def source_of_distances(double: bool) -> str:
    """The CUDA source of ``cityblock``."""
    return _head({"DEPTH": 8 if double else 16, "R": 4 if double else 8} | _of_precision(double), double) + _DISTANCES


def _of_precision(double: bool) -> dict[str, object]:
    return {"EXP": "exp" if double else "expf", "ABS": "fabs" if double else "fabsf", "LOSSY": 1e-7 if double else 1e-4}


def _head(named: dict[str, object], double: bool) -> str:
    defined = "".join(f"#define {name} {value}\n" for name, value in named.items())
    return defined + _TYPES.format(type="double" if double else "float")


def compiled(source: str, names: tuple[str, ...]) -> dict[str, Any]:
    """The functions of a CUDA source, for the current device."""
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


@cache
def _distances(double: bool) -> Any:
    return compiled(source_of_distances(double), ("cityblock",))["cityblock"]


def cityblock(x: Tensor, z: Tensor) -> Tensor:
    """‖x_i − z_j‖_1 between the rows of two matrices."""
    (n, d), m, double = x.shape, len(z), x.dtype == torch.float64
    out = torch.empty((n, m), dtype=x.dtype, device=x.device)
    side = 64 if double else 128
    for top in range(0, n, side * _MOST_ROWS):
        end = min(n, top + side * _MOST_ROWS)
        grid = (-(-m // side), -(-(end - top) // side), 1)
        _distances(double)(grid=grid, block=(256, 1, 1), args=[x[top:end], z, out[top:end], end - top, m, d])
    return out


class CudaBase:
    """Some kernels of one base, at most KERNELS, in one precision."""

    def __init__(self, codes: Codes, metric: str, base: int, kernels: list[int], double: bool):
        self.base, self.kernels = base, kernels
        self.index = torch.tensor(kernels, device="cuda")
        self._functions = compiled(sources_of(codes, metric, kernels, double), ("sums", "combined"))

    def _given(self, values: Tensor, left: DeviceSide, right: DeviceSide) -> list[Any]:
        b, x = self.base, left.features[self.base]
        parts = [x, right.features[b], left.centred_squares[b], right.centred_squares[b]]
        parts += [left.squares, right.squares, left.scale, right.scale]
        return [values, *parts, x.shape[1], len(left), len(right)]

    def sums(self, values: Tensor, left: DeviceSide, right: DeviceSide, steps: Tensor) -> Tensor:
        """Σ_i steps_ti k_m(x_i, z_j) in double precision, (n_kernels, n_tasks, n_right), from base values."""
        n, m, n_tasks, count = len(left), len(right), len(steps), len(self.kernels)
        wide, deep = -(-m // _THREADS), -(-n_tasks // _TASKS)
        chunks = min(-(-_BLOCKS // (wide * deep)), -(-n // 32), max(1, _SUM_BYTES // (8 * count * n_tasks * m)))
        per_chunk = -(-n // chunks)
        chunks = -(-n // per_chunk)
        out = torch.empty((chunks, count, n_tasks, m), dtype=torch.float64, device=values.device)
        given = [*self._given(values, left, right), steps.contiguous(), out, n_tasks, per_chunk]
        self._functions["sums"](grid=(wide, chunks, deep), block=(_THREADS, 1, 1), args=given)
        return out[0] if chunks == 1 else out.sum(dim=0)

    def combine(
        self, values: Tensor, left: DeviceSide, right: DeviceSide, weight: Tensor, out: Tensor, adding: bool
    ) -> None:
        """Write Σ_m weight_m k_m(x_i, z_j) to ``out`` (n_left, n_right), or add it."""
        given = [*self._given(values, left, right), weight[self.index], out, int(adding)]
        grid = (-(-len(right) // _THREADS), min(len(left), _MOST_ROWS), 1)
        self._functions["combined"](grid=grid, block=(_THREADS, 1, 1), args=given)
