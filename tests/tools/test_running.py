"""Limits on the threads of linear algebra: set for small systems, restored afterwards, also from several threads."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from paretomkl._tools.running import SMALL_SYSTEM, blas_threads
from paretomkl.machines import _ridge
from tests.machines.cases import one_task


def blas_now() -> set[int]:
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


@pytest.fixture
def two_threads():
    """Two threads, as on a machine of two cores; the other tests have one."""
    with threadpool_limits(2, user_api="blas"):
        if blas_now() != {2}:
            pytest.skip("the linear algebra here has one thread only")
        yield


def test_a_limit_ends_with_its_block(two_threads):
    with blas_threads(1):
        assert blas_now() == {1}
        with blas_threads(None):
            assert blas_now() == {1}
    assert blas_now() == {2}
    with pytest.raises(ZeroDivisionError), blas_threads(1):
        1 / 0  # noqa: B018
    assert blas_now() == {2}


def test_no_limit_stays_if_those_of_two_threads_overlap(two_threads):
    """The second thread begins under the limit of the first, and ends after it."""
    second_in, first_out = threading.Event(), threading.Event()

    def second() -> None:
        with blas_threads(1):
            second_in.set()
            first_out.wait()

    with blas_threads(1):
        other = threading.Thread(target=second)
        other.start()
        second_in.wait()
    first_out.set()
    other.join()
    assert blas_now() == {2}


@pytest.mark.parametrize(("n", "expected"), [(60, 1), (SMALL_SYSTEM + 1, 2)])
def test_small_systems_are_solved_by_one_thread(n, expected, two_threads, monkeypatch):
    """Two threads took a hundred times as long for 200 samples on a busy machine."""
    seen, solver = [], _ridge._solver  # noqa: SLF001

    def watched(*given):
        seen.append(blas_now())
        return solver(*given)

    monkeypatch.setattr(_ridge, "_solver", watched)
    x = np.linspace(0, 1, n)
    one_task("ridge", np.exp(-(np.subtract.outer(x, x) ** 2)), np.sin(9 * x), 1.0).sweep(np.ones(1))
    assert seen == [{expected}]
    assert blas_now() == {2}
