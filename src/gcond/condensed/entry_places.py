"""The places of a matrix's entries, in few bits: written and read here and nowhere else.

The matrix is read row after row, so that its m entries lie at increasing places below U, rows times columns. Where they
lie far apart, each place is split (Elias 1974, Fano 1971): its lowest :math:`l = ⌊\\log_2 (U / m)⌋` bits are written
out, and for the rest, ``high``, the i-th entry sets bit ``high + i``. That takes about :math:`l + 2` bits an entry,
half a bit more than any way could do without knowing more. Where they lie close, there is one bit for each place
instead. The smaller of the two is written; bits fill bytes from the highest.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gcond.errors import GcondError

NAMES = ("x.high", "x.low", "x.mask")

Places = NDArray[np.int64]


def pack_places(there: Places, places: int) -> dict[str, NDArray[np.uint8]]:
    """The increasing places ``there`` [m], of so many, as tensors by name."""
    width = _low_bits(len(there), places)
    top = int(there[-1] >> width) + len(there) if len(there) else 0
    if _bytes(top) + _bytes(len(there) * width) > _bytes(places):
        mask = np.zeros(places, np.uint8)
        mask[there] = 1
        return {"x.mask": np.packbits(mask)}
    high = np.zeros(top, np.uint8)
    high[(there >> width) + np.arange(len(there))] = 1
    low = (there[:, None] >> np.arange(width)[::-1] & 1).astype(np.uint8)
    return {"x.high": np.packbits(high), "x.low": np.packbits(low)}


def unpack_places(parts: Mapping[str, Tensor | None], rows: int, columns: int) -> Places:
    """The reverse of :func:`pack_places` for a matrix of that shape; tensors that cannot be its are refused."""
    high, low, mask = (parts[name] for name in NAMES)
    if (high is None) != (low is None) or (high is None) == (mask is None):
        raise GcondError("it has not one way to say where entries are: x.high and x.low, or else x.mask")
    for name, tensor in zip(NAMES, (high, low, mask), strict=True):
        if tensor is not None and (tensor.dtype != torch.uint8 or tensor.dim() != 1):
            raise GcondError(f"{name} is {tensor.dtype} {list(tensor.shape)}, and must be uint8 [bytes]")
    places = rows * columns
    if mask is not None:
        if len(mask) != _bytes(places):
            raise GcondError(f"x.mask is {len(mask)} bytes, and must be {_bytes(places)}: a bit for each place")
        return np.flatnonzero(np.unpackbits(mask.numpy(), count=places))
    assert high is not None
    assert low is not None
    set_bits = np.flatnonzero(np.unpackbits(high.numpy()))
    width = _low_bits(len(set_bits), places)
    if len(set_bits) > places or len(low) != _bytes(len(set_bits) * width):
        raise GcondError(f"x.low has {len(low)} bytes, which are not those of {len(set_bits):,} of {places:,} places")
    bits = np.unpackbits(low.numpy(), count=len(set_bits) * width).reshape(len(set_bits), width)
    there: Places = set_bits - np.arange(len(set_bits)) << width | bits @ (1 << np.arange(width)[::-1])
    if len(there) and (there[-1] >= places or (np.diff(there) <= 0).any()):
        raise GcondError(f"x.high and x.low lead to places that are not in order, or not in {rows} × {columns}")
    return there


def _low_bits(count: int, places: int) -> int:
    """The bits of each place that are written out."""
    return (places // count).bit_length() - 1 if 0 < count <= places else 0


def _bytes(bits: int) -> int:
    return -(-bits // 8)
