"""Adam on named tensors, with a state that can be written down and taken up again."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor


class Adam:
    """PyTorch's fused Adam on a dictionary of tensors, which it changes in place."""

    def __init__(self, tensors: Mapping[str, Tensor], lr: float) -> None:
        self._tensors = dict(tensors)
        self.lr = lr
        self._adam = torch.optim.Adam(list(self._tensors.values()), lr=lr, fused=True) if self._tensors else None

    def step(self, gradients: Mapping[str, Tensor]) -> None:
        """One step against ``gradients``, given under the names of the tensors."""
        if self._adam is None:
            return
        for key, tensor in self._tensors.items():
            tensor.grad = gradients[key]
        self._adam.step()
        for tensor in self._tensors.values():
            tensor.grad = None

    def slow_down(self, factor: float) -> None:
        """Multiply the rate; the moments stay."""
        self.lr *= factor
        if self._adam is not None:
            self._adam.param_groups[0]["lr"] = self.lr

    def state(self) -> dict[str, Tensor]:
        """The moments and the number of steps, as copies; empty before the first step."""
        if self._adam is None:
            return {}
        return {
            f"{key}.{part}": value.clone()
            for key, tensor in self._tensors.items()
            for part, value in self._adam.state.get(tensor, {}).items()
        }

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Take up what :meth:`state` gave."""
        if self._adam is None:
            return
        self._adam.state.clear()
        for name, value in state.items():
            key, _, part = name.rpartition(".")
            self._adam.state[self._tensors[key]][part] = value.clone()
