"""The functions for GPUs, compiled as C++ with one thread of the CPU for each of theirs."""

from __future__ import annotations

import ctypes
import shutil
import subprocess

import numpy as np
import pytest
from numpy.testing import assert_allclose

from paretomkl.kernels import Gaussian, KernelBank, Laplacian, Linear, Polynomial

pytest.importorskip("torch", reason="PyTorch is not installed")
_cuda = pytest.importorskip("paretomkl.kernels._cuda")

SHIM = """
#include <barrier>
#include <cmath>
#include <thread>
#include <vector>
struct Three { unsigned x, y, z; };
static thread_local Three threadIdx;
static Three blockIdx, gridDim;
static std::barrier<>* together;
#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(n)
#define __shared__ static
#define __syncthreads() together->arrive_and_wait()
using std::min;
template <class Function> void launch(Three grid, unsigned block, Function run)
{
    gridDim = grid;
    for (blockIdx.z = 0; blockIdx.z < grid.z; blockIdx.z++)
        for (blockIdx.y = 0; blockIdx.y < grid.y; blockIdx.y++)
            for (blockIdx.x = 0; blockIdx.x < grid.x; blockIdx.x++) {
                std::barrier<> meeting(block);
                together = &meeting;
                std::vector<std::thread> threads;
                for (unsigned t = 0; t < block; t++)
                    threads.emplace_back([=] { threadIdx = {t, 0, 0}; run(); });
                for (auto& one : threads) one.join();
            }
}
"""


def built(tmp_path, source, name, arguments):
    """A function that launches ``name`` with (grid, block, arguments); arrays are passed as pointers."""
    if shutil.which("g++") is None:
        pytest.skip("there is no g++")
    call = ", ".join(f"a{k}" for k in range(len(arguments)))
    given = ", ".join(f"{kind} a{k}" for k, kind in enumerate(arguments))
    entry = f"""
extern "C" void run(unsigned x, unsigned y, unsigned z, unsigned block, {given})
{{ launch({{x, y, z}}, block, [=] {{ {name}({call}); }}); }}
"""
    file, library = tmp_path / "source.cpp", tmp_path / "source.so"
    file.write_text(SHIM + source + entry)
    command = ["g++", "-std=c++20", "-O1", "-pthread", "-shared", "-fPIC", "-w", "-o", str(library), str(file)]
    subprocess.run(command, check=True)
    run = ctypes.CDLL(str(library)).run

    def launch(grid, block, *values):
        return run(
            *grid, block, *(v.ctypes.data_as(ctypes.c_void_p) if isinstance(v, np.ndarray) else v for v in values)
        )

    return launch


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
def test_sums_and_combinations_match_the_bank(sides, base, double, tmp_path):
    evaluator, left, right, expected = sides
    kind, n, m = (np.float64 if double else np.float32), len(left), len(right)
    own = np.flatnonzero(evaluator.codes.base == base)
    metric = evaluator.bases.kernels[base].metric
    source = _cuda.sources_of(evaluator.codes, metric, own.tolist(), double)
    x, z = (np.ascontiguousarray(side.features[base], dtype=kind) for side in (left, right))
    values = x @ z.T if metric == "sqeuclidean" else np.abs(x[:, None] - z).sum(axis=2)
    parts = [values, x, z, left.centred_squares[base], right.centred_squares[base]]
    parts += [left.squares, right.squares, left.scale, right.scale]
    given = [*(np.ascontiguousarray(part, dtype=kind) for part in parts), x.shape[1], n, m]
    shared = ["const T*"] * 9 + ["int"] * 3
    steps = np.where(np.random.default_rng(1).random((6, n)) < 0.4, 1.0, 0.0) * np.arange(6)[:, None]
    out = np.full((2, len(own), 6, m), np.nan)
    (tmp_path / "a").mkdir()
    sums = built(tmp_path / "a", source, "sums", [*shared, "const double*", "double*", "int", "int"])
    sums((1, 2, 2), 128, *given, steps, out, 6, 12)
    precision = 1e-10 if double else 2e-5
    assert_allclose(out.sum(axis=0), np.einsum("ti,mij->mtj", steps, expected[own]), atol=precision)
    weight, combined = np.linspace(0, 1, len(own), dtype=kind), np.full((n, m), 1.0, dtype=kind)
    (tmp_path / "b").mkdir()
    combine = built(tmp_path / "b", source, "combined", [*shared, "const T*", "T*", "int"])
    combine((1, 4, 1), 128, *given, weight, combined, 1)
    assert_allclose(combined, 1 + np.tensordot(weight, expected[own], axes=1), atol=precision)


@pytest.mark.parametrize("double", [False, True])
def test_distances_match(double, tmp_path):
    kind, side = (np.float64, 64) if double else (np.float32, 128)
    rng = np.random.default_rng(0)
    x, z = rng.normal(size=(130, 19)).astype(kind), rng.normal(size=(70, 19)).astype(kind)
    out = np.full((130, 70), np.nan, dtype=kind)
    arguments = ["const T*", "const T*", "T*", "int", "int", "int"]
    distances = built(tmp_path, _cuda.source_of_distances(double), "cityblock", arguments)
    distances((-(-70 // side), -(-130 // side), 1), 256, x, z, out, 130, 70, 19)
    assert_allclose(out, np.abs(x[:, None] - z).sum(axis=2), rtol=1e-5)
