"""The compact form of a condensed graph's tensors: written and read here and nowhere else.

Features in steps are ``x.codes`` and ``x.rest`` (:mod:`gcond.condensed.coded_levels`), form 3. In bits, form 2, they
are a few tensors. Where entries are: ``x.high`` and ``x.low``, or ``x.mask``
(:mod:`gcond.condensed.entry_places`). What they are: ``x.values``, in levels of 4 bits (two to a byte, the first one
low) or 8, half floats or floats. And ``x.scale``, the largest magnitude of each row, which is their unit (not for 32
bits). All else keeps its name, in the smallest type that
holds it; soft labels are whole parts of 255 or 65,535, and ``edge_weight`` is half floats in units of
``edge_weight.scale``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

import numpy as np
import torch
from torch import Tensor

from gcond.condensed.coded_levels import MOST, pack_levels, unpack_levels
from gcond.condensed.compaction import (
    MOST_PLACES,
    Compaction,
    Levels,
    from_levels,
    from_steps,
    is_signed,
    label_parts,
    to_levels,
    to_steps,
)
from gcond.condensed.entry_places import NAMES, pack_places, unpack_places
from gcond.errors import GcondError

IN_BITS, IN_STEPS = 2, 3
"""The forms. 2: places of entries in few bits; form 1 had a byte or two for each of the gaps between them. 3: multiples
of a step."""

_UNSIGNED = (np.uint8, np.uint16, np.uint32, np.int64)
_SIGNED = (np.int8, np.int16, np.int32, np.int64)
_WHOLE = {torch.uint8, torch.uint16, torch.uint32, torch.int8, torch.int16, torch.int32, torch.int64}
_VALUES = {4: torch.uint8, 8: torch.uint8, 16: torch.float16, 32: torch.float32}
_INDICES = ("edge_index", "source_index", "cluster")
_NOT_FOR_TRAINING = ("source_index", "cluster", "structure.")


def pack(tensors: Mapping[str, Tensor], compaction: Compaction) -> dict[str, Tensor]:
    """``tensors`` of a graph that is as compact as ``compaction`` says, in the form of the file."""
    packed = dict(tensors)
    packed |= {name: _narrow(tensors[name]) for name in _INDICES if name in tensors}
    packed |= _pack_features(packed.pop("x"), compaction)
    y, weight = tensors["y"], tensors["edge_weight"]
    if y.dim() == 1:
        packed["y"] = _narrow(y)
    elif compaction.bits < 32:
        packed["y"] = _narrow((y.double() * label_parts(y.shape[1])).round().long(), at_least=label_parts(y.shape[1]))
    if compaction.bits < 32:
        found = to_levels(weight[None], Compaction(bits=16)) if len(weight) else None
        packed["edge_weight"] = torch.from_numpy(found.codes[0]) if found else weight.half()
        packed["edge_weight.scale"] = torch.from_numpy(found.scale) if found else torch.ones(1)
    return packed


def training_bytes(packed: Mapping[str, Tensor]) -> int:
    """Bytes of what training needs: features, labels and edges."""
    return sum(tensor.nbytes for name, tensor in packed.items() if not name.startswith(_NOT_FOR_TRAINING))


def form(x: Tensor, compaction: Compaction) -> dict[str, Any]:
    """What the metadata must say for ``x`` to be read again."""
    about = {"entries": compaction.entries, "features": x.shape[1], "signed": is_signed(x)}
    if compaction.step is None:
        return about | {"version": IN_BITS, "bits": compaction.bits}
    largest = int(np.abs(to_steps(x, compaction.step)).max())
    return about | {"version": IN_STEPS, "step": compaction.step, "largest": largest}


def unpack(packed: Mapping[str, Tensor], said: Any) -> tuple[Compaction | None, dict[str, Tensor]]:
    """The compaction and the tensors that :func:`pack` had, from their packed form and what :func:`form` said of it.

    Where nothing was said, the tensors are plain ones. There is one form for each graph, and any other is refused.
    """
    if said is None:
        return None, dict(packed)
    compaction = _read_form(said)
    tensors = _unpack(packed, compaction, said)
    again = pack(tensors, compaction)
    for name, tensor in packed.items():
        if name not in again:
            raise GcondError(f"it has a tensor '{name}' that is not of its form: the file is damaged")
        if tensor.dtype != again[name].dtype or not torch.equal(tensor, again[name]):
            raise GcondError(f"'{name}' is not what gcond writes for these numbers: the file is damaged")
    if said != form(tensors["x"], compaction):
        raise GcondError("the form of its features is damaged")
    return compaction, tensors


def _read_form(said: Any) -> Compaction:
    if not isinstance(said, dict):
        raise GcondError("the form of its features is damaged")
    version = said.get("version")
    if version not in (IN_BITS, IN_STEPS):
        what = "compact the graph again" if version in range(IN_BITS) else "upgrade gcond"
        raise GcondError(f"its features are in form {version}, and this gcond reads {IN_BITS} and {IN_STEPS}: {what}")
    features, signed = said.get("features"), said.get("signed")
    if type(features) is not int or features < 1 or type(signed) is not bool:
        raise GcondError("the form of its features is damaged")
    if version == IN_BITS:
        return Compaction(said.get("entries"), said.get("bits"))  # type: ignore[arg-type]
    step, largest = said.get("step"), said.get("largest")
    if type(step) is not float or type(largest) is not int or not 0 <= largest < MOST:
        raise GcondError("the form of its features is damaged")
    return Compaction(said.get("entries"), step=step)


def _unpack(packed: Mapping[str, Tensor], compaction: Compaction, said: Mapping[str, Any]) -> dict[str, Tensor]:
    tensors, features = dict(packed), said["features"]
    parts = {name: tensors.pop(name, None) for name in (*NAMES, "x.values", "x.scale", "x.codes", "x.rest")}
    if "x" in tensors:
        raise GcondError("it has features twice, as 'x' and compacted")
    for name in ("y", "edge_index", "edge_weight"):
        if name not in tensors:
            raise GcondError(f"it lacks the tensor '{name}': it was not written whole by gcond")
    y = tensors["y"]
    if y.dim() not in (1, 2) or 0 in y.shape:
        _refuse("y", y, "[nodes] or [nodes, classes]")
    if len(y) * features > MOST_PLACES:
        raise GcondError(f"it claims {len(y):,} × {features:,} features, and must have up to {MOST_PLACES:,}")
    if compaction.step is None:
        tensors["x"] = _unpack_features(parts, compaction, len(y), features, signed=said["signed"])
    else:
        tensors["x"] = _unpack_steps(parts, compaction.step, len(y), said)
    tensors |= {name: _widened(name, tensors[name]) for name in _INDICES if name in tensors}
    if y.dim() == 1:
        tensors["y"] = _widened("y", y)
    elif compaction.bits < 32:
        tensors["y"] = (_widened("y", y).double() / label_parts(y.shape[1])).float()
    if compaction.bits < 32:
        tensors["edge_weight"] = _unpack_weights(tensors["edge_weight"], tensors.pop("edge_weight.scale", None))
    return tensors


def _pack_features(x: Tensor, compaction: Compaction) -> dict[str, Tensor]:
    if compaction.step is not None:
        coded = pack_levels(to_steps(x, compaction.step))
        return {f"x.{name}": torch.from_numpy(array.copy()) for name, array in coded.items()}
    if compaction.bits == 32:
        codes, scale = x.numpy(), None
    else:
        scale, codes = to_levels(x, compaction)
    there = np.flatnonzero(codes)
    found = codes.reshape(-1)[there]
    if compaction.bits <= 8:
        found = (found + (2 ** (compaction.bits - 1) if is_signed(x) else 0)).astype(np.uint8)
    if compaction.bits == 4:
        pairs = np.append(found, np.zeros(len(found) % 2, np.uint8)).reshape(-1, 2)
        found = pairs[:, 0] | pairs[:, 1] << 4
    where = pack_places(there, codes.size)
    arrays = where | {"x.values": found} | ({"x.scale": scale} if scale is not None else {})
    return {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in arrays.items()}


def _unpack_features(
    parts: Mapping[str, Tensor | None], compaction: Compaction, rows: int, columns: int, *, signed: bool
) -> Tensor:
    values, scale = parts["x.values"], parts["x.scale"]
    if values is None or values.dim() != 1 or values.dtype != _VALUES[compaction.bits]:
        _refuse("x.values", values, f"{_VALUES[compaction.bits]} [entries] for {compaction.bits} bits")
    if compaction.bits < 32 and (scale is None or scale.shape != (rows,) or scale.dtype != torch.float32):
        _refuse("x.scale", scale, f"float32 [{rows}]")
    for name, numbers in (("x.values", values), ("x.scale", scale)):
        if numbers is not None and not bool(torch.isfinite(numbers).all()):
            raise GcondError(f"{name} has numbers that are not finite")
    there = unpack_places(parts, rows, columns)
    if len(values) != (-(-len(there) // 2) if compaction.bits == 4 else len(there)):
        raise GcondError(f"x.values has {len(values)} numbers, which are not those of {len(there)} entries")
    found = values.numpy()
    if compaction.bits == 4:
        found = np.stack([found & 15, found >> 4], 1).reshape(-1)[: len(there)]
    if compaction.bits <= 8:
        found = found.astype(np.int16) - (2 ** (compaction.bits - 1) if signed else 0)
    codes = np.zeros(rows * columns, found.dtype)
    codes[there] = found
    codes = codes.reshape(rows, columns)
    if scale is None:
        return torch.from_numpy(codes)
    return from_levels(Levels(scale.numpy(), codes), compaction, signed=signed)


def _unpack_steps(parts: Mapping[str, Tensor | None], step: float, rows: int, said: Mapping[str, Any]) -> Tensor:
    for name in ("x.codes", "x.rest"):
        part = parts[name]
        if part is None or part.dtype != torch.uint8 or part.dim() != 1:
            _refuse(name, part, "uint8 [bytes]")
    codes, rest = (part.numpy() for name in ("x.codes", "x.rest") if (part := parts[name]) is not None)
    steps = unpack_levels(codes, rest, rows, said["features"], largest=said["largest"], signed=said["signed"])
    if np.abs(steps).max() >= MOST:
        raise GcondError(f"x.codes has numbers of {MOST:,} steps and more: the file is damaged")
    return from_steps(steps, step)


def _unpack_weights(weight: Tensor, scale: Tensor | None) -> Tensor:
    if weight.dim() != 1 or weight.dtype != torch.float16:
        _refuse("edge_weight", weight, "float16 [edges]")
    if scale is None or scale.shape != (1,) or scale.dtype != torch.float32:
        _refuse("edge_weight.scale", scale, "float32 [1]")
    if not bool(weight.isfinite().all() & scale.isfinite().all()):
        raise GcondError("edge_weight has numbers that are not finite")
    return from_levels(Levels(scale.numpy(), weight.numpy()[None]), Compaction(bits=16), signed=False)[0]


def _narrow(whole: Tensor, at_least: int = 0) -> Tensor:
    """``whole`` numbers in the smallest type that holds them, and ``at_least``."""
    low, high = (int(whole.min()), max(int(whole.max()), at_least)) if whole.numel() else (0, at_least)
    types = _SIGNED if low < 0 else _UNSIGNED
    fitting = next(each for each in types if np.iinfo(each).min <= low and high <= np.iinfo(each).max)
    return torch.from_numpy(whole.numpy().astype(fitting))


def _widened(name: str, narrow: Tensor) -> Tensor:
    if narrow.dtype not in _WHOLE:
        _refuse(name, narrow, "whole numbers")
    return torch.from_numpy(narrow.numpy().astype(np.int64))


def _refuse(name: str, found: Tensor | None, needed: str) -> NoReturn:
    if found is None:
        raise GcondError(f"it lacks the tensor '{name}': it was not written whole by gcond")
    raise GcondError(f"{name} is {found.dtype} {list(found.shape)}, and must be {needed}")
