"""Pair steps on an NVIDIA GPU: one block of threads per task, with the rules of :func:`._smo.solve_task`.

A pair step needs two decisions of all samples: which pair moves, and, after it has moved, which variable violates
optimality most. So each step waits twice for the whole block, and in between every thread looks at its own samples,
k = thread, thread + n_threads, … A task of a few thousand samples takes about one step per sample and all tasks run at
the same time, hence a round takes as long as its longest task.

The errors y − Kv are not computed again from scratch here: they belong to a part of a task, whose duality gap is
measured later from all samples.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from ..kernels._device import note_failure
from ._smo import CHECK_EVERY, PATIENCE

if TYPE_CHECKING:
    from ..kernels._device import Tensor


class Parts(NamedTuple):
    """Small problems on a device: their matrices and vectors one after the other, in the order of ``sizes``.

    Given are the errors e = y − Kv of the dual v; both are overwritten. epsilon, rtol and floor have one number per
    problem, as :func:`._smo.solve_tasks` takes them.
    """

    sizes: list[int]
    K: Tensor
    e: Tensor
    v: Tensor
    low: Tensor
    high: Tensor
    epsilon: Tensor
    rtol: Tensor
    floor: Tensor
    balanced: bool


SOURCE = """
typedef {type} T;
typedef long long wide;
const int CHECK_EVERY = {check_every};
const unsigned ALL = 0xffffffffu;
#define FAR __longlong_as_double(0x7ff0000000000000ll)
#define INVERSE(x) {inverse}

// What a variable may do, in a byte: rise, fall, and its sign.
const int UP = 1, DOWN = 2, NEGATIVE = 4, POSITIVE = 8;

__device__ __forceinline__ int state_of(double v, double low, double high)
{{
    return (v < high ? UP : 0) | (v > low ? DOWN : 0) | (v < 0 ? NEGATIVE : 0) | (v > 0 ? POSITIVE : 0);
}}

__device__ __forceinline__ double rising(double e, int state, double epsilon)
{{
    return !(state & UP) ? -FAR : state & NEGATIVE ? e + epsilon : e - epsilon;
}}

__device__ __forceinline__ double falling(double e, int state, double epsilon)
{{
    return !(state & DOWN) ? FAR : state & POSITIVE ? e - epsilon : e + epsilon;
}}

// The lane of a warp with the largest score; the first of several.
__device__ __forceinline__ int lane_of_largest(double score)
{{
#if __CUDA_ARCH__ >= 800
    const wide bits = __double_as_longlong(score);
    const unsigned long long key = bits < 0 ? ~bits : bits | (1ull << 63); // has the order of the scores
    const unsigned high = key >> 32, top = __reduce_max_sync(ALL, high);
    const unsigned low = high == top ? (unsigned)key : 0, bottom = __reduce_max_sync(ALL, low);
    return __ffs(__ballot_sync(ALL, high == top && low == bottom)) - 1;
#else
    double largest = score;
    #pragma unroll
    for (int mask = 16; mask; mask /= 2) largest = fmax(largest, __shfl_xor_sync(ALL, largest, mask));
    return __ffs(__ballot_sync(ALL, score == largest)) - 1;
#endif
}}

// A sample with the largest score, with one more number that belongs to it.
struct Best {{
    double score, other;
    int at;
}};

__device__ __forceinline__ void take_better(Best& mine, double score, int at, double other)
{{
    if (score > mine.score) {{
        mine.score = score;
        mine.at = at;
        mine.other = other;
    }}
}}

// The best of all threads, for all of them; ``shared`` may be used again after the next __syncthreads.
__device__ __forceinline__ void note_best(const Best& mine, Best* shared)
{{
    if (threadIdx.x % 32 == lane_of_largest(mine.score)) shared[threadIdx.x / 32] = mine;
}}

__device__ __forceinline__ Best noted_best(const Best* shared)
{{
    const int lane = threadIdx.x % 32;
    return shared[lane_of_largest(lane < blockDim.x / 32 ? shared[lane].score : -FAR)];
}}

// The sums of two numbers over all threads, for all of them; the order of addition is fixed.
__device__ __forceinline__ void sum_of_block(double& a, double& b, double* shared)
{{
    #pragma unroll
    for (int mask = 16; mask; mask /= 2) {{
        a += __shfl_xor_sync(ALL, a, mask);
        b += __shfl_xor_sync(ALL, b, mask);
    }}
    const int lane = threadIdx.x % 32;
    if (lane == 0) {{
        shared[threadIdx.x / 32] = a;
        shared[32 + threadIdx.x / 32] = b;
    }}
    __syncthreads();
    a = lane < blockDim.x / 32 ? shared[lane] : 0.0;
    b = lane < blockDim.x / 32 ? shared[32 + lane] : 0.0;
    #pragma unroll
    for (int mask = 16; mask; mask /= 2) {{
        a += __shfl_xor_sync(ALL, a, mask);
        b += __shfl_xor_sync(ALL, b, mask);
    }}
}}

// The offset halfway between the slopes of the variables that can rise and of those that can fall.
__device__ __forceinline__ double offset_of(int i, double e_up, double e_down, int balanced)
{{
    if (!balanced) return 0;
    if (i < 0 || e_down == FAR) {{
        const double b = i < 0 ? e_down : e_up;
        return fabs(b) < FAR ? b : 0;
    }}
    return 0.5 * (e_up + e_down);
}}

// K (n, n), e, v, y, low, high, state and diagonal of task t = blockIdx.x begin at matrix[t] and at ptr[t].
// Given are e = y − Kv and v. ``found`` (n_tasks, 4) receives the dual value, the gap, the offset and the steps.
extern "C" __global__ void __launch_bounds__(1024) pair_steps(
    const T* __restrict__ all_values, const wide* matrix, const wide* ptr, double* __restrict__ all_e,
    double* all_v, double* __restrict__ all_y, const double* __restrict__ all_low,
    const double* __restrict__ all_high, unsigned char* __restrict__ all_state, T* all_diagonal,
    const double* tubes, const double* tolerances, const double* floors, double* found, int balanced, int patience)
{{
    __shared__ Best partners[32], rises[32], falls[32];
    __shared__ double sums[64];
    const int t = blockIdx.x, thread = threadIdx.x, n_threads = blockDim.x;
    const int n = (int)(ptr[t + 1] - ptr[t]);
    const T* __restrict__ K = all_values + matrix[t];
    double *__restrict__ e = all_e + ptr[t], *v = all_v + ptr[t], *__restrict__ y = all_y + ptr[t];
    const double *__restrict__ low = all_low + ptr[t], *__restrict__ high = all_high + ptr[t];
    unsigned char* __restrict__ state = all_state + ptr[t];
    T* diagonal = all_diagonal + ptr[t]; // like v, written by one thread and read by others
    const double epsilon = tubes[t];

    for (int k = thread; k < n; k += n_threads) y[k] = e[k];
    for (int i = 0; i < n; i++) {{
        const double weight = v[i];
        if (weight == 0) continue;
        for (int k = thread; k < n; k += n_threads) y[k] += weight * K[(wide)i * n + k];
    }}
    const Best none = {{-FAR, 0, -1}};
    Best top = none, up = none, down = none; // ``down`` has the smallest slope, with its sign changed
    for (int k = thread; k < n; k += n_threads) {{
        diagonal[k] = K[(wide)k * n + k];
        state[k] = state_of(v[k], low[k], high[k]);
        take_better(top, diagonal[k], k, 0);
        take_better(up, rising(e[k], state[k], epsilon), k, 0);
        take_better(down, -falling(e[k], state[k], epsilon), k, 0);
    }}
    note_best(top, partners);
    note_best(up, rises);
    note_best(down, falls);
    __syncthreads();
    top = noted_best(partners);
    up = noted_best(rises);
    down = noted_best(falls);
    __syncthreads();
    const double flat = 1e-14 * top.score + 1e-300; // curvature for a pair of equal samples

    int steps = 0;
    double b = 0, value = 0, gap = FAR;
    while (true) {{
        int i = up.at;
        double e_up = up.score, e_down = -down.score;
        if (!balanced) {{ // a variable that moves alone has a fictitious partner with error zero
            i = e_up > 0 ? i : -1;
            e_up = e_up > 0 ? e_up : 0;
            e_down = e_down < 0 ? e_down : 0;
        }}
        const double violation = e_up - e_down;
        if (steps % CHECK_EVERY == 0 || violation <= 1e-12 * (1 + fabs(e_up)) || steps >= patience * n) {{
            b = offset_of(i, e_up, e_down, balanced);
            value = gap = 0;
            for (int k = thread; k < n; k += n_threads) {{
                const double u = e[k] - b, tube = epsilon * fabs(v[k]);
                value += 0.5 * v[k] * (y[k] + e[k]) - tube;
                gap += high[k] * fmax(0.0, u - epsilon) - low[k] * fmax(0.0, -u - epsilon) - v[k] * u + tube;
            }}
            sum_of_block(value, gap, sums);
            const double enough = fmax(tolerances[t] * value, floors[t]);
            if (gap <= enough || violation <= 1e-15 * (1 + fabs(e_up)) || steps >= patience * n) break;
        }}
        // i can rise and violates optimality most; its partner j can fall and gives the largest gain
        const T* row_i = i >= 0 ? K + (wide)i * n : 0;
        const double diagonal_i = i >= 0 ? (double)diagonal[i] : 0;
        Best partner = none;
        for (int k = thread; k < n; k += n_threads) {{
            const double there = falling(e[k], state[k], epsilon), slope = fmax(e_up - there, 0.0);
            const double curvature = diagonal_i + diagonal[k] - 2 * (row_i ? (double)row_i[k] : 0);
            take_better(partner, slope * slope * INVERSE(fmax(curvature, flat)), k, there);
        }}
        note_best(partner, partners);
        __syncthreads();
        partner = noted_best(partners);
        int j = partner.at;
        double gain = partner.score, e_j = partner.other;
        if (!balanced && i >= 0 && e_up * e_up > gain * fmax(diagonal_i, flat)) {{
            j = -1;
            gain = 1;
        }}
        if (!(gain > 0)) break;
        // With a tube, the slope changes at zero, where a step ends.
        double v_i = 0, v_j = 0, stop_i = 0, stop_j = 0, room_i = FAR, room_j = FAR, curvature = diagonal_i;
        if (i >= 0) {{
            v_i = v[i];
            stop_i = epsilon > 0 && v_i < 0 ? 0 : high[i];
            room_i = stop_i - v_i;
        }}
        if (j >= 0) {{
            v_j = v[j];
            stop_j = epsilon > 0 && v_j > 0 ? 0 : low[j];
            room_j = v_j - stop_j;
            curvature += diagonal[j] - 2 * (row_i ? (double)row_i[j] : 0);
        }} else
            e_j = 0;
        const double delta = fmin(fmin((e_up - e_j) / fmax(curvature, flat), room_i), room_j);
        v_i = delta == room_i ? stop_i : v_i + delta;
        v_j = delta == room_j ? stop_j : v_j - delta;
        const T* row_j = j >= 0 ? K + (wide)j * n : 0;
        up = down = none;
        for (int k = thread; k < n; k += n_threads) {{
            if (k == i) state[k] = state_of(v_i, low[k], high[k]);
            if (k == j) state[k] = state_of(v_j, low[k], high[k]);
            e[k] -= delta * ((row_i ? (double)row_i[k] : 0) - (row_j ? (double)row_j[k] : 0));
            take_better(up, rising(e[k], state[k], epsilon), k, 0);
            take_better(down, -falling(e[k], state[k], epsilon), k, 0);
        }}
        note_best(up, rises);
        note_best(down, falls);
        __syncthreads();
        up = noted_best(rises);
        down = noted_best(falls);
        // Only now, since all threads have read the old values. Each variable is written by the thread that owns it.
        if (i >= 0 && i % n_threads == thread) v[i] = v_i;
        if (j >= 0 && j % n_threads == thread) v[j] = v_j;
        steps++;
    }}
    if (thread == 0) {{
        found[4 * t] = value;
        found[4 * t + 1] = gap;
        found[4 * t + 2] = b;
        found[4 * t + 3] = steps;
    }}
}}
"""


def source_of(double: bool) -> str:
    """The CUDA source of ``pair_steps`` for matrices in one precision."""
    # the best partner need not be the best to the last digit
    inverse = "(1.0 / (x))" if double else "(1.0f / fmaxf((float)(x), 1e-30f))"
    return SOURCE.format(type="double" if double else "float", check_every=CHECK_EVERY, inverse=inverse)


def pair_steps(parts: Parts) -> Tensor:
    """Solve all parts with at most PATIENCE steps per sample; dual value, gap, offset and steps, (n_parts, 4)."""
    K, device = parts.K, parts.K.device
    sizes = torch.tensor(parts.sizes)
    ptr, matrix = (torch.cumsum(torch.nn.functional.pad(x, (1, 0)), 0) for x in (sizes, sizes**2))
    found = torch.empty((len(sizes), 4), dtype=torch.float64, device=device)
    y, state, diagonal = (torch.empty_like(parts.v, dtype=kind) for kind in (torch.float64, torch.uint8, K.dtype))
    given = [K, matrix.to(device), ptr.to(device), parts.e, parts.v, y, parts.low, parts.high, state, diagonal]
    given += [parts.epsilon, parts.rtol, parts.floor, found, int(parts.balanced), PATIENCE]
    n_threads = min(max(128, 1 << (max(parts.sizes) // 4).bit_length()), 1024)  # with about three samples each
    _compiled(K.dtype == torch.float64)(grid=(len(sizes), 1, 1), block=(n_threads, 1, 1), args=given)
    return found


def _compiled(double: bool) -> Any:
    from ..kernels._cuda import compiled

    return compiled(source_of(double), ("pair_steps",))["pair_steps"]


def takes_steps(device: torch.device, kind: Any) -> bool:
    """Whether a device takes pair steps on matrices of this precision."""
    return device.type == "cuda" and takes_them_right("cuda", kind)


@cache
def takes_them_right(device: str, kind: Any) -> bool:
    """Whether a small problem is solved; otherwise a warning says why not."""
    try:
        n = 150
        x = torch.linspace(0.1, 10, n, dtype=torch.float64, device=device)
        K, y = torch.exp(-((x[:, None] - x) ** 2)).to(kind), torch.sin(x).sign()
        one, v = torch.ones_like(y[:1]), torch.zeros_like(y)
        e, low, high = y.clone(), torch.clamp(y, max=0.0), torch.clamp(y, min=0.0)
        found = pair_steps(Parts([n], K.view(-1), e, v, low, high, 0 * one, 1e-2 * one, 0 * one, True))[0]
        u, value = e - found[2], v @ (y + e) / 2
        gap = (high * u.clamp(min=0) - low * (-u).clamp(min=0) - v * u).sum()
        now, said = torch.cat([y - K.double() @ v, torch.stack([value, gap])]), torch.cat([e, found[:2]])
        if torch.allclose(now, said) and bool((v.sum().abs() < 1e-9) & (gap <= 1e-2 * value)):
            return True
        raise ArithmeticError("a small problem was not solved")
    except Exception as error:  # NVRTC is not part of PyTorch's interface: whatever happens, there is another way
        note_failure(error)
        return False
