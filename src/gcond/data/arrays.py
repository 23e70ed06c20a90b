"""Arrays that came out of a foreign file, made safe to hand on as tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gcond.errors import GcondError

if TYPE_CHECKING:
    import numpy as np
    from torch import Tensor


def tensor(array: np.ndarray, what: str) -> Tensor:
    """Numbers of any width and byte order as float32, or bool, or int32 where they fit and int64 where not.

    ``what`` names the array in messages. Text, dates, records and complex numbers are refused.
    """
    import numpy as np
    import torch

    kind = array.dtype.kind
    if kind not in "biuf":
        raise GcondError(f"{what} holds {array.dtype} values, and plain numbers are needed there")
    if kind == "b":
        return torch.from_numpy(np.ascontiguousarray(array))
    if kind == "f":
        with np.errstate(over="ignore"):  # too large for float32 becomes inf, which the checks refuse
            return torch.from_numpy(np.ascontiguousarray(array, dtype=np.float32))
    narrow = np.iinfo(np.int32)
    wide = array.size > 0 and (int(array.min()) < narrow.min or int(array.max()) > narrow.max)
    if wide and int(array.max()) > np.iinfo(np.int64).max:
        raise GcondError(f"{what} holds {int(array.max())}, and whole numbers go up to {np.iinfo(np.int64).max}")
    return torch.from_numpy(np.ascontiguousarray(array, dtype=np.int64 if wide else np.int32))


def whole_numbers(array: np.ndarray, what: str) -> Tensor:
    """The same as :func:`tensor`, and integers only."""
    found = tensor(array, what)
    if array.dtype.kind not in "iu":
        raise GcondError(f"{what} holds {array.dtype} values, and whole numbers are needed there")
    return found


def finite(values: Tensor, what: str) -> Tensor:
    """``values``, refused if one of them is infinite or not a number."""
    from gcond.graph.validation import all_finite

    if not all_finite(values):
        raise GcondError(f"{what} holds numbers that are not finite")
    return values
