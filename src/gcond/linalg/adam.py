"""Adam on named tensors, with a state that can be written down and taken up again."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor
from torch.optim.adam import adam


class Adam:
    """Adam (Kingma and Ba, ICLR 2015) on a dictionary of tensors, which it changes in place.

    It is PyTorch's fused kernel through its functional form: :class:`torch.optim.Adam` takes four times as long
    around a small step, and a condensation has millions of those; and the first one that a process makes imports
    PyTorch's compiler, which takes seconds that would be counted as training.
    """

    def __init__(self, tensors: Mapping[str, Tensor], lr: float, weight_decay: float = 0.0) -> None:
        # A matrix kept by columns is handled as its transpose: Adam looks at one number at a time.
        self._turned = {key for key, tensor in tensors.items() if not tensor.is_contiguous()}
        self._tensors = {key: tensor.mT if key in self._turned else tensor for key, tensor in tensors.items()}
        self._moments = {
            part: {key: torch.zeros_like(tensor) for key, tensor in self._tensors.items()}
            for part in ("mean", "square")
        }
        self._steps = {key: torch.zeros((), device=tensor.device) for key, tensor in self._tensors.items()}
        self.lr = lr
        self._weight_decay = weight_decay

    @torch.no_grad()
    def step(self, gradients: Mapping[str, Tensor]) -> None:
        """One step against ``gradients``, given under the names of the tensors."""
        if not self._tensors:
            return
        turned = {key: gradients[key].mT if key in self._turned else gradients[key] for key in self._tensors}
        adam(
            list(self._tensors.values()),
            [gradient.contiguous() for gradient in turned.values()],
            list(self._moments["mean"].values()),
            list(self._moments["square"].values()),
            [],
            list(self._steps.values()),
            fused=True,
            amsgrad=False,
            beta1=0.9,
            beta2=0.999,
            lr=self.lr,
            weight_decay=self._weight_decay,
            eps=1e-8,
            maximize=False,
        )

    def slow_down(self, factor: float) -> None:
        """Multiply the rate; the moments stay."""
        self.lr *= factor

    def state(self) -> dict[str, Tensor]:
        """The moments and the number of steps, as copies."""
        parts = self._moments | {"steps": self._steps}
        return {f"{key}.{part}": value.clone() for part, values in parts.items() for key, value in values.items()}

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Take up what :meth:`state` gave."""
        parts = self._moments | {"steps": self._steps}
        for part, values in parts.items():
            for key, value in values.items():
                value.copy_(state[f"{key}.{part}"])
