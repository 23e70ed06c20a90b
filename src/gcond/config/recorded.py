"""Records that a file holds, as the types that they were written from."""

from __future__ import annotations

from typing import Any, TypeVar

from gcond.errors import GcondError

T = TypeVar("T")


def read_record(cls: type[T], values: Any, what: str) -> T:
    """``values`` as the dataclass ``cls``; what a later gcond added is passed over, and anything wrong is refused.

    ``what`` is the record's name in messages.
    """
    from pydantic import TypeAdapter, ValidationError

    try:
        return TypeAdapter(cls).validate_python(values)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join([what, *(str(part) for part in first["loc"])])
        raise GcondError(f"damaged metadata, {where}: {first['msg'][:1].lower()}{first['msg'][1:]}") from None
