"""Text from elsewhere, made fit for a terminal: nothing in it moves the cursor, and every encoding can show it."""

from __future__ import annotations

import codecs
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

_HANDLER = "gcond-spelled"
# What gcond itself writes beyond ASCII.
_SPELLED = {
    "±": "+-", "–": "-", "—": "-", "−": "-", "…": "...", "×": "x", "·": "*", "●": "*", "○": "o", "≥": ">=", "≤": "<=",
    "’": "'", "‘": "'", "“": '"', "”": '"', "²": "^2", "δ": "delta", "Φ": "Phi", "α": "alpha", "Â": "A", "→": "->",
}  # fmt: skip


def counted(number: int, what: str) -> str:
    """``1 graph``, ``1,000 graphs``, ``3 classes``."""
    return f"{number:,} {what}{'' if number == 1 else 'es' if what.endswith('s') else 's'}"


def classes_there(classes: int) -> str:
    """How many classes there are, and how they are numbered, in words."""
    if classes == 1:
        return "there is 1 class, 0"
    return f"there are {classes:,} classes, 0 to {classes - 1}"


def printable(text: str) -> str:
    r"""``text`` with control characters, and those that turn the direction of writing, spelled: ``\x1b``.

    Line breaks stay.
    """
    if text.isprintable():
        return text
    return "".join(letter if letter == "\n" or not _acts(letter) else _escaped(letter) for letter in text)


@contextmanager
def encodable(*streams: TextIO) -> Iterator[None]:
    """Let ``streams`` spell what their encoding does not have, instead of failing."""
    codecs.register_error(_HANDLER, _spell)
    before: list[tuple[TextIO, str]] = []
    for stream in streams:
        change = getattr(stream, "reconfigure", None)
        if change is not None and stream.errors is not None:
            before.append((stream, stream.errors))
            change(errors=_HANDLER)
    try:
        yield
    finally:
        for stream, errors in before:
            if not stream.closed:
                stream.reconfigure(errors=errors)  # type: ignore[attr-defined]


def _spell(error: UnicodeError) -> tuple[str | bytes, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return _in_ascii(error.object[error.start : error.end]), error.end


def spelled_for(encoding: str, text: str) -> str:
    """``text`` as :func:`encodable` would let a stream of that ``encoding`` write it."""
    try:
        text.encode(encoding)
    except UnicodeEncodeError as error:
        return text[: error.start] + _in_ascii(text[error.start : error.end]) + spelled_for(encoding, text[error.end :])
    return text


def _in_ascii(letters: str) -> str:
    return "".join(_SPELLED.get(letter) or _escaped(letter) for letter in letters)


def _acts(letter: str) -> bool:
    """Whether a terminal may do something else with ``letter`` than show it: it controls, breaks or turns the line."""
    turns = unicodedata.bidirectional(letter) in ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")
    return turns or unicodedata.category(letter) in ("Cc", "Cs", "Zl", "Zp")


def _escaped(letter: str) -> str:
    return letter.encode("ascii", "backslashreplace").decode() if ord(letter) > 127 else f"\\x{ord(letter):02x}"
