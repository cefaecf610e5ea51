"""All kernel values of a Gram store on a device of PyTorch, for machines that solve linear systems there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch

from .._tools.typing import Array
from ..kernels._choose_device import obstacle
from ..kernels._device import DeviceKernels, DeviceSamples, free_bytes, on_device, pairs_at_once
from ._large.on_device import Duals

if TYPE_CHECKING:
    from ..kernels._device import Tensor
    from ._blocks import GramBlocks

_SHARE = 0.25  # of the free memory of a device


class DeviceValues:
    """The values of all kernels, before their factors: a matrix (n_kernels, n, n) for each block of a store."""

    def __init__(self, gram: GramBlocks, device: Any):
        self.device, self._blocks, self._shape = device, gram.blocks, (gram.n_tasks, gram.n_kernels)
        self._duals = Duals(gram, device)
        self._stacks = [
            torch.empty((gram.n_kernels, n, n), dtype=torch.float64, device=device) for n in map(len, gram.samples)
        ]
        if obstacle(gram.bank.evaluator, gram.side.features):
            self._fetch(gram)
        else:
            self._evaluate(gram)

    def _evaluate(self, gram: GramBlocks) -> None:
        kernels, samples = DeviceKernels(gram.bank.evaluator, self.device), DeviceSamples(gram.side, self.device)
        for stack, numbers in zip(self._stacks, gram.samples, strict=True):
            side = samples.take(on_device(numbers, self.device), torch.float64)
            for m, K in kernels.each(side, side):
                stack[m] = K

    def _fetch(self, gram: GramBlocks) -> None:
        """Precomputed kernels, functions, and kernels of sparse samples are evaluated on the host, one by one."""
        flat = np.empty(sum(len(numbers) ** 2 for numbers in gram.samples))
        for m, weights in enumerate(np.eye(gram.n_kernels)):
            gram.combine(weights, flat)
            for b, stack in enumerate(self._stacks):
                stack[m] = on_device(gram.block(flat, b), self.device)

    @classmethod
    def of(cls, gram: GramBlocks, device: Any) -> Self | None:
        """The values, if there is memory for them."""
        size = 8.0 * gram.n_kernels * sum(len(numbers) ** 2 for numbers in gram.samples)
        fits = size <= _SHARE * free_bytes(device) and gram.bank.evaluator.bases.terms is None
        return cls(gram, device) if fits else None

    def combined(self, b: int, weight: Array) -> Tensor:
        """Σ_m weight_m K_m of block b."""
        return torch.tensordot(on_device(weight, self.device), self._stacks[b], dims=1)

    def forms(self, dual: Array) -> Array:
        """v_t'K_m v_t of the flat duals of all tasks, (n_tasks, n_kernels)."""
        forms = np.zeros(self._shape)
        for b, stack in enumerate(self._stacks):
            tasks = self._blocks.tasks[self._blocks.task_ptr[b] : self._blocks.task_ptr[b + 1]]
            v = self._duals.dense(b, tasks, dual)
            step = max(1, pairs_at_once(self.device) // stack.shape[1])
            found = [torch.stack([(some @ K).mul_(some).sum(dim=1) for K in stack], dim=1) for some in v.split(step)]
            forms[tasks] = torch.cat(found).cpu().numpy()
        return forms
