"""Results as JSON files: written whole, and checked when they are read, since anyone may have written them."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from gcond import __version__
from gcond.errors import GcondError
from gcond.runtime.files import write_text

T = TypeVar("T")


def marked(kind: str, result: Any) -> dict[str, Any]:
    """The fields of a ``result``, with its ``kind`` and the version of gcond."""
    return {"kind": kind, "gcond": __version__, **asdict(result)}


def write_json(path: Path, values: dict[str, Any]) -> Path:
    """Write ``values`` atomically."""
    write_text(path, json.dumps(values, indent=1, allow_nan=False, ensure_ascii=False) + "\n")
    return path


def read_json(path: Path, shape: type[T], kind: str = "") -> T:
    """The dataclass ``shape`` that ``path`` holds; what a later gcond added is passed over.

    With ``kind``, a file that says to hold another is refused.
    """
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        found = values.get("kind", kind) if isinstance(values, dict) else kind
        if not kind or found == kind:
            return TypeAdapter(shape).validate_python(values)
        reason = f"kind: it is {found!r} and not {kind!r}"
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the whole"
        reason = f"{where}: {_lower_first(first['msg'])}"
    except OSError as error:
        reason = error.strerror or str(error)
    except (ValueError, RecursionError):
        reason = "it is not JSON"
    raise GcondError(f"'{path}' cannot be read ({reason}): let gcond write it again")


def _lower_first(text: str) -> str:
    return text[:1].lower() + text[1:]
