"""What a Ray task is given: pickled, and beside it what it holds of Ray's object store.

Ray fetches an object before the task takes its cores only where it is an argument of its own. A task that fetched
what lies deep in its arguments would lend its cores to the next one while it waits, and more would run than should.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import ray
from ray.cloudpickle import CloudPickler


@dataclass(frozen=True, eq=False)
class Parcel:
    """Anything pickled, without the objects in it that have to be fetched; large arrays are beside it, too."""

    content: bytes
    buffers: list[pickle.PickleBuffer]

    @classmethod
    def of(cls, thing: object) -> tuple[Parcel, list[Any]]:
        """``thing`` to be sent, and the references to the objects in it, in their order."""
        file = BytesIO()
        pickler = _Pickler(file)
        pickler.dump(thing)  # type: ignore[no-untyped-call]  # Ray's has no types
        return cls(file.getvalue(), pickler.buffers), pickler.objects

    def unpack(self, values: Sequence[Any]) -> Any:
        """The thing, with the fetched ``values`` in place of the references."""
        return _Unpickler(self, values).load()


class _Pickler(CloudPickler):
    def __init__(self, file: BytesIO) -> None:
        self.buffers: list[pickle.PickleBuffer] = []
        self.objects: list[Any] = []
        super().__init__(  # type: ignore[no-untyped-call]
            file, protocol=5, buffer_callback=self.buffers.append
        )

    def persistent_id(self, value: object) -> int | None:
        if not isinstance(value, ray.ObjectRef):
            return None
        self.objects.append(value)
        return len(self.objects) - 1


class _Unpickler(pickle.Unpickler):
    def __init__(self, parcel: Parcel, values: Sequence[Any]) -> None:
        super().__init__(BytesIO(parcel.content), buffers=parcel.buffers)
        self._values = values

    def persistent_load(self, place: int) -> Any:
        return self._values[place]
