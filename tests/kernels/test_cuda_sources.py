"""The functions for GPUs, compiled as C++ with one thread of the CPU for each of theirs."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from functools import cache, partial

import numpy as np
import pytest
from numpy.testing import assert_allclose

from paretomkl import config_context
from paretomkl.gram import GramBlocks
from paretomkl.gram._blocks import TaskLayout
from paretomkl.kernels import Gaussian, KernelBank, Laplacian, Linear, Polynomial
from paretomkl.machines import MACHINES
from paretomkl.machines._smo import Box, solve_tasks

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
_cuda = pytest.importorskip("paretomkl.kernels._cuda")
_smo_on_device = pytest.importorskip("paretomkl.machines._smo_on_device")

SHIM = """
#include <algorithm>
#include <barrier>
#include <cmath>
#include <cstring>
#include <memory>
#include <strings.h>
#include <thread>
#include <vector>
#define __CUDA_ARCH__ ARCH
struct Three { unsigned x, y, z; };
static thread_local Three threadIdx;
static Three blockIdx, blockDim, gridDim;
static std::barrier<>* together;
static std::vector<std::unique_ptr<std::barrier<>>> warps;
static unsigned long long given[1024];
#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(n)
#define __shared__ static
#define __syncthreads() together->arrive_and_wait()
using std::min;
template <class To, class From> To same_bits(From x) { To y; std::memcpy(&y, &x, sizeof y); return y; }
inline long long __double_as_longlong(double x) { return same_bits<long long>(x); }
inline double __longlong_as_double(long long x) { return same_bits<double>(x); }
inline int __ffs(unsigned x) { return ffs(x); }
// What all threads of a warp give, seen by each of them.
template <class Function> auto of_warp(unsigned long long mine, Function read)
{
    auto& meeting = *warps[threadIdx.x / 32];
    given[threadIdx.x] = mine;
    meeting.arrive_and_wait();
    const auto found = read(given + threadIdx.x / 32 * 32);
    meeting.arrive_and_wait();
    return found;
}
inline unsigned __reduce_max_sync(unsigned, unsigned x)
{
    return of_warp(x, [](auto* all) { return (unsigned)*std::max_element(all, all + 32); });
}
inline unsigned __ballot_sync(unsigned, bool x)
{
    const auto bits = [](auto* all) {
        unsigned y = 0;
        for (int k = 0; k < 32; k++) y |= (unsigned)all[k] << k;
        return y;
    };
    return of_warp(x, bits);
}
inline double __shfl_xor_sync(unsigned, double x, int mask)
{
    const int from = (threadIdx.x % 32) ^ mask;
    return of_warp(same_bits<unsigned long long>(x), [=](auto* all) { return same_bits<double>(all[from]); });
}
template <class Function> void launch(Three grid, unsigned block, Function run)
{
    gridDim = grid;
    blockDim = {block, 1, 1};
    for (blockIdx.z = 0; blockIdx.z < grid.z; blockIdx.z++)
        for (blockIdx.y = 0; blockIdx.y < grid.y; blockIdx.y++)
            for (blockIdx.x = 0; blockIdx.x < grid.x; blockIdx.x++) {
                std::barrier<> meeting(block);
                together = &meeting;
                warps.clear();
                for (unsigned w = 0; w < block / 32; w++) warps.push_back(std::make_unique<std::barrier<>>(32));
                std::vector<std::thread> threads;
                for (unsigned t = 0; t < block; t++)
                    threads.emplace_back([=] { threadIdx = {t, 0, 0}; run(); });
                for (auto& one : threads) one.join();
            }
}
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A function that compiles a source once; it returns one that launches ``name`` with (grid, block, arguments)."""
    folder = tmp_path_factory.mktemp("sources")

    @cache
    def library(source, name, arguments, arch):
        if shutil.which("g++") is None:
            pytest.skip("there is no g++")
        call = ", ".join(f"a{k}" for k in range(len(arguments)))
        given = ", ".join(f"{kind} a{k}" for k, kind in enumerate(arguments))
        entry = f"""
extern "C" void run(unsigned x, unsigned y, unsigned z, unsigned block, {given})
{{ launch({{x, y, z}}, block, [=] {{ {name}({call}); }}); }}
"""
        file = folder / f"{len(list(folder.iterdir()))}.cpp"
        file.write_text(SHIM + source + entry)
        options = ["-std=c++20", "-O1", "-pthread", "-shared", "-fPIC", "-w", f"-DARCH={arch}"]
        subprocess.run(["g++", *options, "-o", str(file.with_suffix(".so")), str(file)], check=True)
        return ctypes.CDLL(str(file.with_suffix(".so")))

    def build(source, name, arguments, arch=900):
        return partial(launch, library(source, name, tuple(arguments), arch).run)

    return build


def launch(run, grid, block, *values):
    """Arrays are passed as pointers."""
    run(*grid, block, *(v.ctypes.data_as(ctypes.c_void_p) if isinstance(v, np.ndarray) else v for v in values))


@pytest.fixture
def sides():
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(23, 5)), rng.normal(size=(70, 5))
    Z[:3] = X[:3]  # at distance zero
    kernels = [Linear(), Polynomial(3), Gaussian(0.5), Gaussian(2.0), Laplacian(0.3), Laplacian(1.0)]
    bank = KernelBank(kernels, normalize="unit").fit(X)
    return bank.evaluator, bank.side(X), bank.side(Z), bank.stack(bank.side(X), bank.side(Z))


@pytest.mark.parametrize("base", [0, 1])
@pytest.mark.parametrize("double", [False, True])
def test_sums_and_combinations_match_the_bank(sides, base, double, built):
    evaluator, left, right, expected = sides
    kind, n, m = (np.float64 if double else np.float32), len(left), len(right)
    own = np.flatnonzero(evaluator.codes.base == base)
    metric = evaluator.bases.kernels[base].metric
    sources = _cuda.sources_of(evaluator.codes, metric, own.tolist(), double)
    x, z = (np.ascontiguousarray(side.features[base], dtype=kind) for side in (left, right))
    values = x @ z.T if metric == "sqeuclidean" else np.abs(x[:, None] - z).sum(axis=2)
    parts = [values, x, z, left.centred_squares[base], right.centred_squares[base]]
    parts += [left.squares, np.pad(right.squares, ((0, 0), (0, 5))), left.scale, np.pad(right.scale, ((0, 0), (0, 5)))]
    parts.append(_cuda.numbers_of(evaluator.codes, own.tolist(), double))
    given = [*(np.ascontiguousarray(part, dtype=kind) for part in parts), x.shape[1], n, m, n, m + 5]
    shared = ["const T*"] * 10 + ["int"] * 5
    steps = np.where(np.random.default_rng(1).random((6, n)) < 0.4, 1.0, 0.0) * np.arange(6)[:, None]
    precision, rows = (1e-10 if double else 2e-5), steps.T.copy()
    for at_once in (6, 4) if base else (6,):  # tasks of a thread
        out = np.full((2, len(own), 6, m), np.nan)
        own_source, arguments = (
            f"#define TASKS {at_once}\n{sources['sums']}",
            [*shared, "const double*", "double*", "int", "int"],
        )
        sums = built(own_source, "sums", arguments)
        sums((1, 2, -(-6 // at_once)), 128, *given, rows, out, 6, 12)
        assert_allclose(out.sum(axis=0), np.einsum("ti,mij->mtj", steps, expected[own]), atol=precision)
    weight, combined = np.linspace(0, 1, len(own), dtype=kind), np.full((n, m), 1.0, dtype=kind)
    combine = built(sources["combined"], "combined", [*shared, "const T*", "T*", "int"])
    combine((1, 4, 1), 128, *given, weight, combined, 1)
    assert_allclose(combined, 1 + np.tensordot(weight, expected[own], axes=1), atol=precision)


def test_threads_share_the_tasks_evenly():
    assert [_cuda.tasks_at_once(n, 8) for n in (1, 9, 10, 19, 45)] == [1, 9, 5, 7, 9]
    assert _cuda.tasks_at_once(5, 100) == 1


@pytest.mark.parametrize("double", [False, True])
def test_distances_match(double, built):
    kind, side = (np.float64, 64) if double else (np.float32, 128)
    rng = np.random.default_rng(0)
    x, z = rng.normal(size=(130, 19)).astype(kind), rng.normal(size=(70, 19)).astype(kind)
    out = np.full((130, 70), np.nan, dtype=kind)
    arguments = ["const T*", "const T*", "T*", "int", "int", "int"]
    distances = built(_cuda.source_of_distances(double), "cityblock", arguments)
    distances((-(-70 // side), -(-130 // side), 1), 256, x, z, out, 130, 70, 19)
    assert_allclose(out, np.abs(x[:, None] - z).sum(axis=2), rtol=1e-5)


SIZES = [70, 1, 33]
POINTERS = ["const T*", "const wide*", "const wide*", "double*", "double*", "double*", "const double*"]
POINTERS += ["const double*", "unsigned char*", "T*", *["const double*"] * 3, "double*", "int", "int"]


def _problems(kind, single):
    """Errors, duals and boxes of tasks of these sizes, and their matrices."""
    rng = np.random.default_rng(0)
    matrices = []
    for n in SIZES:
        X = rng.normal(size=(n, 3))
        K = np.exp(-0.3 * ((X[:, None] - X) ** 2).sum(axis=2))
        matrices.append(K.astype(np.float32 if single else np.float64))
    n = sum(SIZES)
    label = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    y, high, v = {
        "svc": (label, np.full(n, 3.0), np.zeros(n)),
        "svr": (rng.normal(size=n), np.full(n, 2.0), np.where(rng.random(n) < 0.3, rng.normal(size=n), 0.0)),
        "svc without offset": (label, np.full(n, 3.0), np.zeros(n)),
        "one class": (np.zeros(n), np.full(n, 0.2), np.full(n, 0.05)),
    }[kind]
    low = {"svr": -high, "one class": 0 * high}.get(kind, np.where(label > 0, 0.0, -high))
    high = high if kind in ("svr", "one class") else np.where(label > 0, high, 0.0)
    return matrices, y, np.clip(v, low, high), low, high, np.full(len(SIZES), 0.1 if kind == "svr" else 0.0)


@pytest.mark.parametrize(
    ("kind", "single", "arch", "block"),
    [
        *((kind, True, 900, 96) for kind in ("svc", "svr", "svc without offset", "one class")),
        *((kind, False, 750, 64) for kind in ("svr", "svc without offset")),
    ],
)
def test_pair_steps_solve_what_the_cpu_solves(kind, single, arch, block, built):
    matrices, y, start, low, high, tube = _problems(kind, single)
    balanced, ptr = kind != "svc without offset", np.cumsum([0, *SIZES])
    layout = TaskLayout(
        ptr,
        np.concatenate([np.arange(n) for n in SIZES]),
        np.cumsum([0, *(n * n for n in SIZES)])[:-1],
        np.array(SIZES),
    )
    flat, expected = np.concatenate([K.ravel() for K in matrices]), start.copy()
    truth = solve_tasks(flat, layout, y, Box(low, high, tube, balanced), expected, 1e-10)

    product = np.concatenate([K.astype(float) @ start[a:b] for K, a, b in zip(matrices, ptr, ptr[1:], strict=False)])
    e, v, found = y - product, start.copy(), np.full((len(SIZES), 4), np.nan)
    scratch = np.full(len(y), np.nan), np.zeros(len(y), dtype=np.uint8), np.zeros(len(y), dtype=flat.dtype)
    steps = built(_smo_on_device.source_of(not single), "pair_steps", POINTERS, arch)
    tolerance, zero = np.full(len(SIZES), 1e-6), np.zeros(len(SIZES))
    places = layout.start.astype(np.int64), ptr.astype(np.int64)
    given = [flat, *places, e, v, scratch[0], low, high, scratch[1], scratch[2], tube, tolerance, zero, found]
    steps((len(SIZES), 1, 1), block, *given, int(balanced), 50)

    value, gap, _, n_steps = found.T
    assert (n_steps < 50 * np.array(SIZES)).all()
    assert (n_steps[[0, 2]] > 1).all()
    assert ((low <= v) & (v <= high)).all()
    if balanced:
        moved = np.add.reduceat(v - start, ptr[:-1])
        assert_allclose(moved, 0, atol=1e-12)
    product = np.concatenate([K.astype(float) @ v[a:b] for K, a, b in zip(matrices, ptr, ptr[1:], strict=False)])
    assert_allclose(e, y - product, atol=1e-10)
    assert_allclose(value, truth.value, rtol=2e-6, atol=1e-12)
    assert (gap <= 1e-6 * np.abs(value) + 1e-12).all()
    assert_allclose(scratch[0], y, atol=1e-6 if single else 1e-12)


@pytest.mark.parametrize("epsilon", [0.0, 0.1])
def test_tasks_are_solved_on_working_sets_by_pair_steps(epsilon, built, monkeypatch):
    """The whole way on the CPU of PyTorch, with our own function for GPUs in place of the code of the CPU."""
    run, used = built(_smo_on_device.source_of(False), "pair_steps", POINTERS), []

    def launch(grid, block, args):
        used.append(grid[0])
        run(grid, block[0], *(x.numpy() if isinstance(x, torch.Tensor) else x for x in args))

    monkeypatch.setattr(_smo_on_device, "_compiled", lambda double: launch)
    monkeypatch.setattr("paretomkl.machines._working_sets_on_device.takes_steps", lambda *given: True)
    monkeypatch.setattr("paretomkl.machines._working_sets_on_device.free_bytes", lambda device: 2e5)  # in two groups
    monkeypatch.setattr("paretomkl.gram._blocks._FEW_PAIRS_OF_ALL", 0)
    monkeypatch.setattr("paretomkl.machines._working_sets.SOME", 30)
    assert _smo_on_device.takes_them_right("cpu", torch.float32)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 3))
    rows = [np.arange(80), np.arange(50, 150)]
    signal = np.concatenate([np.sin(2 * X[r, 0]) + 0.1 * rng.normal(size=len(r)) for r in rows])
    kind, options = ("svr", {"epsilon": epsilon}) if epsilon else ("svc", {})
    targets = signal if epsilon else np.where(signal > 0, 1.0, -1.0)

    def sweep():
        bank = KernelBank([Gaussian(0.5), Linear()], normalize="unit").fit(X)
        gram = GramBlocks(bank, X, rows)
        tasks = MACHINES[kind].make(gram, targets, np.full(len(targets), 3.0), np.ones(2), **options)
        return tasks.sweep(np.array([0.7, 0.3]), rtol=1e-3)

    truth = sweep()
    used.clear()
    with config_context(device="torch-cpu"):
        there = sweep()
    assert 1 in used  # tasks take turns
    assert (there.upper - there.lower <= 2.01e-3 * there.upper).all()
    assert (there.upper >= truth.lower).all()
    assert (there.lower <= truth.upper).all()


@pytest.mark.parametrize("double", [False, True])
def test_the_compiler_for_gpus_accepts_pair_steps(double, tmp_path):
    if shutil.which("nvcc") is None:
        pytest.skip("there is no nvcc")
    (tmp_path / "steps.cu").write_text(_smo_on_device.source_of(double))
    for arch in (75, 90):
        command = ["nvcc", f"-arch=sm_{arch}", "-Werror", "all-warnings", "-cubin", "-o", "steps.cubin", "steps.cu"]
        subprocess.run(command, check=True, cwd=tmp_path)
