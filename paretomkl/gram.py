"""Gram matrices of many tasks: kept by blocks of samples that share tasks, formed anew for each θ."""

from __future__ import annotations

import numpy as np

from ._kernel_rows import combine_rows, mirror, quadratic_forms, support_of_block
from ._parallel import run_chunks, split_rows
from ._typing import AnyArray, Array, IntArray
from .kernels import PANEL_BYTES, FittedBank

MOST_CHECKED = 1000  # samples of a block among which a kernel is checked for negative eigenvalues


class GramBlocks:
    """Combined Gram matrices and quadratic forms of T tasks over one set of samples.

    Tasks that share samples share a block, so that K_θ is formed once for all of them; tasks on separate samples
    have separate blocks, and nothing is computed between them. All blocks lie in one flat array,
    ``K[start[b] : start[b] + size[b]**2]``.

    Parameters
    ----------
    bank : FittedBank
    X : array of shape (n_samples, n_features), or (n_samples, n_samples, n_kernels) if precomputed
    rows : list of n_tasks integer arrays
        The samples of each task, rising.
    n_jobs : int, default=1
        Threads.
    shared : bool, default=True
        Whether all tasks have the same θ. Otherwise every task gets a block of its own.
    """

    def __init__(self, bank: FittedBank, X: AnyArray, rows: list[IntArray], n_jobs: int = 1, shared: bool = True):
        self.bank = bank
        self.n_jobs = n_jobs
        self.side = bank.side(X)
        self.samples, self.block_of_task = connected_blocks(rows, len(X)) if shared else (rows, np.arange(len(rows)))
        self.tasks = [np.flatnonzero(self.block_of_task == b) for b in range(len(self.samples))]
        self.size = np.array([len(samples) for samples in self.samples], dtype=np.int64)
        self.start = np.concatenate([[0], np.cumsum(self.size**2)[:-1]]).astype(np.int64)
        self.ptr = np.concatenate([[0], np.cumsum([len(r) for r in rows])]).astype(np.int64)
        # position of each task's samples within its block
        self.idx = np.concatenate(
            [np.searchsorted(self.samples[b], r) for b, r in zip(self.block_of_task, rows, strict=True)]
        ).astype(np.int64)
        self.K = np.empty(int((self.size**2).sum()))
        n_bases = len(bank.base_metric)
        kept = 8 * n_bases * len(self.K) <= bank.cache_bytes
        self._panels = [self._panel(b, samples) for b, samples in enumerate(self.samples)] if kept else None

    def _panel(self, block: int, samples: IntArray) -> Array:
        return self.bank.panel(self.side, samples, self.side, self.samples[block]).reshape(-1)

    def _row_step(self, n_columns: int) -> int:
        return max(16, int(PANEL_BYTES // (8 * len(self.bank.base_metric) * n_columns)))

    def combine(self, theta: Array) -> Array:
        """K_θ = Σ_m θ_m K_m of all blocks, in the flat array that is also returned.

        θ has shape (n_kernels,), or (n_tasks, n_kernels) where the blocks are the tasks.
        """
        thetas = np.array(np.broadcast_to(theta, (len(self.samples), self.bank.n_kernels)), order="C")
        for b, theta_b in enumerate(thetas):
            n = int(self.size[b])
            side = (self.samples[b], self.side.squares, self.side.scale)
            if self._panels is not None:
                pieces = [(self._panels[b], 0, n, i, j) for i, j in split_rows(n, self._pieces(n))]
                self._combine_pieces(theta_b, pieces, side, b)
            else:
                step = self._row_step(n)
                for first in range(0, n, step):
                    last = min(first + step, n)
                    panel = self._panel(b, self.samples[b][first:last])
                    self._combine_pieces(theta_b, [(panel, first, last - first, first, last)], side, b)
            mirror(self.K, self.start[b], n)
        return self.K

    def _combine_pieces(self, theta: Array, pieces: list[tuple], side: tuple, block: int) -> None:
        def work(panel: Array, panel_first: int, panel_rows: int, first: int, last: int) -> None:
            combine_rows(
                self.bank.program,
                theta,
                panel,
                panel_first,
                panel_rows,
                first,
                last,
                True,
                side,
                side,
                self.K,
                self.start[block],
            )

        run_chunks(work, pieces, self.n_jobs)

    def quadratic_forms(self, v: Array) -> Array:
        """G[t, m] = v_t' K_m v_t, shape (n_tasks, n_kernels), for the flat signed dual v of all tasks."""
        G = np.zeros((len(self.ptr) - 1, self.bank.n_kernels))
        for b, tasks in enumerate(self.tasks):
            support, table = support_of_block(tasks, self.ptr, self.idx, v, int(self.size[b]))
            G[tasks] = self._forms_of_block(b, support, table)
        return G

    def _forms_of_block(self, block: int, support: IntArray, table: Array) -> Array:
        """Quadratic forms of the tasks of one block; only pairs of support vectors are looked at."""
        n, n_support = int(self.size[block]), len(support)
        if n_support == 0:
            return np.zeros((len(table), self.bank.n_kernels))
        side = (self.samples[block], self.side.squares, self.side.scale)

        def work(panel: Array, row: IntArray, column: IntArray, shape: tuple[int, int], first: int, last: int) -> Array:
            return quadratic_forms(self.bank.program, panel, row, column, *shape, first, last, side, support, table)

        if self._panels is not None:
            panel = self._panels[block]
            ranges = split_rows(n_support, self._pieces(n_support))
            parts = run_chunks(work, [(panel, support, support, (n, n), i, j) for i, j in ranges], self.n_jobs)
            return np.sum(parts, axis=0)
        total = np.zeros((len(table), self.bank.n_kernels))
        everyone = np.arange(n_support)
        chosen = self.samples[block][support]
        step = self._row_step(n_support)
        for first in range(0, n_support, step):
            last = min(first + step, n_support)
            panel = self.bank.panel(self.side, chosen[first:last], self.side, chosen).reshape(-1)
            total += work(panel, everyone - first, everyone, (last - first, n_support), first, last)
        return total

    def check_positive_semidefinite(self) -> None:
        """Refuse kernels of unknown make (callables, precomputed stacks) that are not symmetric or clearly indefinite.

        A principal submatrix of a positive semidefinite matrix is so too; of a large block some samples are looked at.
        """
        for b, metric in enumerate(self.bank.base_metric):
            if metric in ("sqeuclidean", "cityblock"):
                continue
            for samples in self.samples:
                some = samples[np.unique(np.linspace(0, len(samples) - 1, MOST_CHECKED).astype(int))]
                K = self.bank.base_matrix(b, self.side, some)
                if not np.allclose(K, K.T, rtol=1e-6, atol=1e-8 * np.abs(K).max()):
                    raise ValueError(f"Kernel {self.bank.name_of_base(b)} is not symmetric.")
                least = np.linalg.eigvalsh(K)[0] if not _has_cholesky(K) else 0.0
                if least < 0:
                    raise ValueError(
                        f"Kernel {self.bank.name_of_base(b)} is not positive semidefinite: it has the eigenvalue "
                        f"{least:.2g}, and {np.diag(K).mean():.2g} as the mean of its diagonal. Clip its negative "
                        "eigenvalues or take another kernel."
                    )

    def _pieces(self, n: int) -> int:
        """Into how many pieces a triangle of n rows is cut: several per thread, none where threads cost more."""
        return 1 if self.n_jobs == 1 or n < 200 else 4 * self.n_jobs


def _has_cholesky(K: Array) -> bool:
    """Whether K plus a hundred-thousandth of its diagonal is positive definite: room for single-precision rounding."""
    try:
        np.linalg.cholesky(K + (1e-5 * np.abs(np.diag(K)).max() + 1e-300) * np.eye(len(K)))
    except np.linalg.LinAlgError:
        return False
    return True


def connected_blocks(rows: list[IntArray], n_samples: int) -> tuple[list[IntArray], IntArray]:
    """Group tasks that share samples, directly or through others.

    Returns the samples of each block (rising) and the block of each task.
    """
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import connected_components

    n_tasks = len(rows)
    task = np.repeat(np.arange(n_tasks), [len(r) for r in rows])
    sample = np.concatenate(rows)
    incidence = csr_matrix((np.ones(len(task)), (task, sample)), shape=(n_tasks, n_samples))
    n_blocks, block = connected_components(incidence @ incidence.T, directed=False)
    samples = [np.unique(np.concatenate([rows[t] for t in np.flatnonzero(block == b)])) for b in range(n_blocks)]
    return samples, block.astype(np.int64)
