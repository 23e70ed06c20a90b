"""The names that a person's nodes have: kept beside a graph, and found again by."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from gcond.errors import GcondError

if TYPE_CHECKING:
    import pyarrow

NUMBERS, TEXT, ENDS = "ids", "ids.text", "ids.ends"
"""Names in a graph's file: whole numbers, or the bytes of all texts one after the other and where each ends."""


class NodeIds:
    """The id of every node, each its own: text, or whole numbers where the table has such."""

    def __init__(self, values: pyarrow.Array | Callable[[], pyarrow.Array]) -> None:
        self._values = values

    @property
    def values(self) -> pyarrow.Array:
        """A pyarrow array of text or int64, without gaps; of ids in a file it is made when it is first asked for."""
        if callable(self._values):
            self._values = self._values()
        return self._values

    def __reduce__(self) -> tuple[type[NodeIds], tuple[pyarrow.Array]]:
        return NodeIds, (self.values,)

    @property
    def are_numbers(self) -> bool:
        """Whether they are whole numbers and not text."""
        import pyarrow as pa

        return bool(pa.types.is_integer(self.values.type))

    @classmethod
    def of(cls, given: NodeIds | pyarrow.Array | Sequence[str] | Sequence[int], n: int) -> NodeIds:
        """``given`` as the ids of ``n`` nodes, refused unless there is one for each and all differ."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if isinstance(given, NodeIds):
            values = given.values
        else:
            try:
                values = given if isinstance(given, pa.Array) else pa.array(list(given))
                kind = values.type
                whole = pa.types.is_integer(kind)
                if not (whole or pa.types.is_string(kind) or pa.types.is_large_string(kind)) or values.null_count:
                    raise pa.ArrowInvalid("neither text nor whole numbers")
                values = values.cast(pa.int64() if whole else pa.large_string())
            except (pa.ArrowException, TypeError, OverflowError):
                raise GcondError("ids must be text, or whole numbers, one for each node") from None
        if len(values) != n:
            raise GcondError(f"there are {len(values)} ids for {n} nodes: give one for each")
        if len(pc.unique(values)) < n:
            counts = pc.value_counts(values)
            twice = counts.field("values")[int(np.argmax(counts.field("counts").to_numpy()))].as_py()
            raise GcondError(f"the id '{twice}' appears more than once: every node needs its own")
        return cls(values)

    @classmethod
    def row_numbers(cls, n: int, *, whole: bool = True) -> NodeIds:
        """The ids of nodes that have none of their own: 0 to n - 1, as numbers or as text."""

        def made() -> pyarrow.Array:
            import pyarrow as pa

            numbers = pa.array(np.arange(n, dtype=np.int64))
            return numbers if whole else numbers.cast(pa.large_string())

        return cls(made)

    def __len__(self) -> int:
        return len(self.values)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NodeIds) and bool(self.values.equals(other.values))

    __hash__ = None  # type: ignore[assignment]

    def to_list(self) -> list[Any]:
        """As plain Python values."""
        return list(self.values.to_pylist())

    def take(self, nodes: Tensor) -> NodeIds:
        """The ids of ``nodes``, int64 [m]."""
        import pyarrow as pa

        return NodeIds(self.values.take(pa.array(nodes.cpu().numpy())))

    def find(self, wanted: Sequence[str], where: str) -> Tensor:
        """The nodes called ``wanted``, in that order: int64 [m]; a name that nobody has in ``where`` is refused."""
        import pyarrow as pa
        import pyarrow.compute as pc

        own = self.values.cast(pa.large_string())
        rows = pc.index_in(pa.array(wanted, pa.large_string()), value_set=own)
        if rows.null_count:
            missing = wanted[int(np.argmax(rows.is_null().to_numpy(zero_copy_only=False)))]
            example = f", they are like '{own[0].as_py()}'" if len(own) else ""
            raise GcondError(f"{where} has no node with the id '{missing}': give ids that it has{example}")
        return torch.from_numpy(rows.to_numpy().astype(np.int64))

    def tensors(self) -> dict[str, Tensor]:
        """The ids as tensors of a file, each under its name there."""
        if self.are_numbers:
            return {NUMBERS: torch.from_numpy(np.array(self.values.to_numpy(), dtype=np.int64))}
        offsets, letters = self.as_text()
        return {TEXT: torch.from_numpy(letters), ENDS: torch.from_numpy(offsets[1:].copy())}

    def as_text(self) -> tuple[np.ndarray, np.ndarray]:
        """Where each id begins and the last ends, int64 [N + 1], and the UTF-8 bytes of all, one after the other."""
        import pyarrow as pa

        # Of an array of its own, which begins at its first byte: this one may be part of another.
        fresh = pa.concat_arrays([pa.array([""], pa.large_string()), self.values.cast(pa.large_string())])
        _, offsets, letters = fresh.buffers()
        begins = np.frombuffer(offsets, dtype=np.int64)[1 : len(self) + 2].copy()
        whole = np.frombuffer(letters, dtype=np.uint8) if letters is not None else np.empty(0, np.uint8)
        return begins, whole[: int(begins[-1])].copy()

    @classmethod
    def mapped(cls, offsets: np.ndarray, letters: np.ndarray, *, whole: bool = False) -> NodeIds:
        """The ids that :meth:`as_text` gave, on these very arrays, which may be files; nothing is checked.

        ``whole`` makes numbers of them, which are held.
        """

        def made() -> pyarrow.Array:
            import pyarrow as pa

            buffers = [None, pa.py_buffer(offsets), pa.py_buffer(letters)]
            text = pa.Array.from_buffers(pa.large_string(), len(offsets) - 1, buffers)
            return text.cast(pa.int64()) if whole else text

        return cls(made)

    @classmethod
    def from_tensors(cls, tensors: dict[str, Tensor], n: int) -> NodeIds | None:
        """The ids that :meth:`tensors` gave, or none where the file has none; refused unless they fit together."""
        import pyarrow as pa

        if NUMBERS in tensors:
            numbers = tensors[NUMBERS]
            if numbers.dtype != torch.int64 or numbers.dim() != 1:
                raise GcondError(f"the ids are {numbers.dtype} {list(numbers.shape)}, and must be int64 [{n}]")
            return cls.of(pa.array(numbers.numpy()), n)
        if TEXT not in tensors and ENDS not in tensors:
            return None
        text, ends = tensors.get(TEXT), tensors.get(ENDS)
        fits = (
            text is not None
            and ends is not None
            and (text.dtype, ends.dtype) == (torch.uint8, torch.int64)
            and text.dim() == ends.dim() == 1
            and len(ends) == n > 0
            and int(ends[0]) >= 0
            and bool((ends.diff() >= 0).all())
            and int(ends[-1]) == len(text)
        )
        if not fits:
            raise GcondError("the ids do not fit together: the file is damaged")
        assert text is not None
        assert ends is not None
        found = cls.mapped(np.concatenate([np.zeros(1, np.int64), ends.numpy()]), text.numpy())
        try:
            found.values.validate(full=True)
        except pa.ArrowException:
            raise GcondError("the ids are not text: the file is damaged") from None
        return cls.of(found, n)
