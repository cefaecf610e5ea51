"""Many tasks cost memory and time in proportion to their samples."""

import tracemalloc

import numpy as np
from numpy.testing import assert_array_equal

from paretomkl.gram import _connected_blocks
from paretomkl.kernels import Gaussian, KernelBank

KERNELS = KernelBank([Gaussian(1.0)], normalize="none")


def peak_bytes(work):
    """Memory that a call takes at most."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def small_tasks(n_tasks, n_rows=2):
    """X, y of two classes and the task of each row."""
    rng = np.random.default_rng(0)
    y = np.tile(np.arange(n_rows) % 2, n_tasks)
    return rng.standard_normal((len(y), 2)) + y[:, None], y, np.repeat(np.arange(n_tasks), n_rows)


# --------------------------------------------------------------------------------------------------------- blocks
def test_blocks_are_the_components_of_tasks_that_share_samples():
    rng = np.random.default_rng(0)
    for n_tasks in (1, 5, 12, 30):
        rows = [np.sort(rng.choice(60, rng.integers(1, 4), replace=False)) for _ in range(n_tasks)]
        samples, block = _connected_blocks(rows, 60)
        share_samples = np.array([[bool(np.intersect1d(a, b).size) for a in rows] for b in rows])
        connected = np.linalg.matrix_power(share_samples.astype(float), n_tasks) > 0
        assert_array_equal(block[:, None] == block, connected)
        for b, members in enumerate(samples):
            assert_array_equal(
                members, np.unique(np.concatenate([r for r, of in zip(rows, block, strict=True) if of == b]))
            )


def test_blocks_of_many_outputs_take_linear_memory():
    rows = [np.arange(20)] * 3000
    assert peak_bytes(lambda: _connected_blocks(rows, 20)) < 200 * 20 * 3000  # the square of the tasks is 9 million
