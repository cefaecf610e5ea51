"""Working sets on a device of PyTorch: what :class:`._working_sets.Work` does, for all tasks together.

Errors, duality gaps and violators of all samples are found where the fields are, and the matrices of working sets stay
there: on a GPU the smaller problems are solved beside them (:mod:`._smo_on_device`). Only the variables that moved and
some numbers per task come back. On the CPU of PyTorch, or if a GPU cannot run our own functions, the compiled code of
the CPU solves them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import torch

from .._tools.running import run_chunks
from .._tools.typing import Array, IntArray
from ..kernels._device import free_bytes, on_device
from ._smo import PATIENCE, Box, Solved
from ._smo_on_device import Parts, pair_steps, takes_steps
from ._working_sets import ADDED, NEARLY, OF_ALL, OF_SUPPORT, Goal, Work, solve_part

if TYPE_CHECKING:
    from ..gram._large.on_device import DeviceField
    from ..kernels._device import Tensor

_ROOM = 0.25  # share of the free memory of a GPU for the matrices of working sets
_LARGEST = 60_000  # samples in a working set beyond which steps take too long


class WorkOnDevice(Work):
    """The state of one sweep; see the arguments of :func:`._working_sets.solve_on_working_sets`."""

    field: DeviceField

    def __init__(self, field: DeviceField, y: Array, box: Box, v: Array, rtol: float, solved: Solved):
        super().__init__(field, y, box, v, rtol, solved)
        device, ptr = field.device, field.gram.layout.ptr
        self._y, self._low, self._high, width = (on_device(x, device) for x in (y, box.low, box.high, box.epsilon))
        self._tasks, self._sizes = field.segments, on_device(np.diff(ptr), device)
        self._width = width[self._tasks.of]
        self._errors = self._y
        self._own_steps = takes_steps(device, field.store.kind)
        room = _ROOM * free_bytes(device) if self._own_steps else field.store.most_bytes
        self._room = int(room / field.store.kind.itemsize)  # numbers in matrices at a time

    def look(self, tasks: list[int]) -> Tensor:
        solved, segments, low, high, width = self.solved, self._tasks, self._low, self._high, self._width
        e = self._errors = self._y - self.field.decisions_there()
        v, balanced, of = self.field.dual_there, self.box.balanced, segments.of
        rise = torch.where(v < high, torch.where(v < 0, e + width, e - width), -torch.inf)
        fall = torch.where(v > low, torch.where(v > 0, e - width, e + width), torch.inf)
        e_up, e_down = segments.largest(rise), -segments.largest(-fall)
        of_one_side = torch.where(e_up == -torch.inf, e_down, e_up)  # any offset beyond this one is optimal
        of_one_side = torch.where(of_one_side.isfinite(), of_one_side, 0.0)
        between = torch.where((e_up == -torch.inf) | (e_down == torch.inf), of_one_side, 0.5 * (e_up + e_down))
        before = on_device(solved.intercept, between.device)
        offsets = (before, between) if balanced else (torch.zeros_like(between),)
        tube, gaps = width * v.abs(), []
        for b in offsets:
            u = e - b[of]
            loss = high * (u - width).clamp(min=0.0) - low * (-u - width).clamp(min=0.0)
            gaps.append(segments.sum(loss - v * u + tube))
        value = segments.sum(0.5 * v * (self._y + e) - tube)
        better = gaps[-1] < gaps[0]
        gap, b = torch.where(better, gaps[-1], gaps[0]), torch.where(better, offsets[-1], offsets[0])
        found = torch.stack([value, gap, b]).cpu().numpy()[:, tasks]
        solved.value[tasks], solved.gap[tasks], solved.intercept[tasks] = found
        return -torch.maximum(rise - b[of], b[of] - fall)

    def choose(self, tasks: list[int], slack: Tensor, n_rounds: int) -> dict[int, IntArray]:
        """The variables to move next, by the rules of :func:`._working_sets.working_set`."""
        device, n_tasks = slack.device, len(self._sizes)
        chosen = torch.zeros(n_tasks, dtype=torch.bool, device=device)
        chosen[tasks] = True
        which = chosen[self._tasks.of].nonzero()[:, 0]
        v, low, high, slack = self.field.dual_there[which], self._low[which], self._high[which], slack[which]
        free = (low < v) & (v < high) & ((self._width[which] == 0) | (v != 0))
        task, largest = self._tasks.of[which], min(_LARGEST, int(self._room**0.5))

        def count(some: Tensor) -> Tensor:
            return torch.bincount(task[some], minlength=n_tasks)

        n_free = count(free).clamp(max=largest // 2)
        most = torch.maximum((OF_ALL * self._sizes).long(), (OF_SUPPORT * count(v != 0)).long()).clamp(min=ADDED)
        n_new = torch.minimum(torch.minimum(count(~free & (slack < 0)), most), largest - n_free)
        n_new += (NEARLY * (n_free + n_new)).long() + 1
        # by task, those inside their box first, then by slack; ties at random: at the start all may be equal
        group, limits = 2 * task + ~free, torch.stack([n_free, n_new], dim=1).flatten()
        order = torch.randperm(len(which), generator=torch.Generator(device).manual_seed(n_rounds), device=device)
        order = order[slack[order].argsort(stable=True)]
        order = order[group[order].argsort(stable=True)]
        sizes, group = torch.bincount(group, minlength=2 * n_tasks), group[order]
        rank = torch.arange(len(order), device=device) - (sizes.cumsum(0) - sizes)[group]
        entries = which[order[rank < limits[group]]].sort().values.cpu().numpy()
        ptr = self.field.gram.layout.ptr
        ends = np.searchsorted(entries, ptr)
        sets = {t: entries[ends[t] : ends[t + 1]] - ptr[t] for t in tasks}
        return dict(sorted(sets.items(), key=lambda pair: -len(pair[1])))

    def finish(self) -> None:
        self.solved.errors[:] = self._errors.cpu().numpy()

    def solve(self, sets: dict[int, IntArray], goals: dict[int, Goal]) -> None:
        for tasks in self._groups({t: len(some) for t, some in sets.items()}):
            self._solve_together({t: sets[t] for t in tasks}, goals)

    def _groups(self, sizes: dict[int, int]) -> Iterator[list[int]]:
        """Tasks whose matrices fit together."""
        group: list[int] = []
        for t, n in sizes.items():
            if group and sum(sizes[s] ** 2 for s in group) + n**2 > self._room:
                yield group
                group = []
            group.append(t)
        yield group

    def _solve_together(self, sets: dict[int, IntArray], goals: dict[int, Goal]) -> None:
        device, tasks, sizes = self.field.device, list(sets), list(map(len, sets.values()))
        entries = np.concatenate([self.entries(t).start + some for t, some in sets.items()])
        at = on_device(entries, device)
        growth, rtol, floor = on_device(np.array([goals[t] for t in tasks]).T, device)
        growth = growth.repeat_interleave(on_device(np.array(sizes), device))
        low, high = growth * self._low[at], growth * self._high[at]
        # The unknowns are the moves; with a tube, which has a kink at zero, the variables themselves.
        v = self.field.dual_there[at]
        now = torch.where(self._width[at] == 0, v, 0.0)
        width = on_device(self.box.epsilon[tasks], device)
        K, balanced = self.field.matrices(sets, at), self.box.balanced
        parts = Parts(sizes, K, self._errors[at], v - now, low - now, high - now, width, rtol, floor, balanced)
        found = (self._steps_on_device if self._own_steps else self._steps_on_host)(parts)
        # a variable that reaches a bound gets its exact value
        x = parts.v
        moved = torch.where(x <= parts.low, low, torch.where(x >= parts.high, high, now + x))
        self.v[entries] = moved.cpu().numpy()
        self.solved.intercept[tasks] = found[:, 2]
        self.solved.steps[tasks] += found[:, 3].astype(np.int64)

    def _steps_on_device(self, parts: Parts) -> Array:
        found = pair_steps(parts).cpu().numpy()
        value, gap, _, steps = found.T
        enough = np.maximum(parts.rtol.cpu().numpy() * value, parts.floor.cpu().numpy())
        late = (steps >= PATIENCE * np.array(parts.sizes)) & (gap > enough)
        return self._steps_on_host(parts, found, np.flatnonzero(late))

    def _steps_on_host(self, parts: Parts, found: Array | None = None, which: IntArray | None = None) -> Array:
        """The same by the code of the CPU, which also takes Newton steps, for some parts or all."""
        sizes = np.array(parts.sizes)
        found = np.zeros((len(sizes), 4)) if found is None else found
        which = np.arange(len(sizes)) if which is None else which
        ends, starts = np.cumsum(sizes), np.cumsum(sizes**2) - sizes**2

        def solve(k: int) -> None:
            n = sizes[k]
            own, K = slice(ends[k] - n, ends[k]), parts.K[starts[k] : starts[k] + n * n]
            e, x, low, high = (values[own].cpu().numpy() for values in parts[2:6])
            width, rtol, floor = (values[k : k + 1].cpu().numpy() for values in parts[6:9])
            box, goal = Box(low, high, width, parts.balanced), Goal(1.0, rtol.item(), floor.item())
            done = solve_part(K.cpu().numpy(), e, box, x, goal)
            parts.v[own] = torch.from_numpy(x).to(parts.v.device)
            found[k] = done.value[0], done.gap[0], done.intercept[0], found[k, 3] + done.steps[0]

        run_chunks(solve, [(k,) for k in which.tolist()], self.field.n_jobs)
        return found
