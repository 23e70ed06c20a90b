"""How objects show themselves in a notebook: small tables, with every text in them escaped, and no script."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from gcond.runtime.plain_text import printable

_CELL = "padding:2px 10px 2px 0;text-align:{};vertical-align:top;white-space:pre-line"


def text(value: object) -> str:
    """``value`` as text in HTML: nothing in it is markup, and control characters are spelled."""
    plain = "".join(letter if letter.isprintable() or letter == "\n" else " " for letter in printable(str(value)))
    return escape(plain)


def facts(title: str, pairs: Mapping[str, object], picture: str = "") -> str:
    """A table of names and what they are, without those that are nothing, beside a ``picture``, which is HTML."""
    rows = "".join(_row("td", (name, value), words=(0, 1)) for name, value in pairs.items() if value not in ("", None))
    table = f"<table>{rows}</table>"
    beside = f'<div style="display:flex;gap:16px;align-items:flex-start">{table}{picture}</div>' if picture else table
    return _titled(title, beside)


def grid(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]], words: Sequence[int] = (0,)) -> str:
    """A table with a heading for each column; those that hold ``words`` start on the left."""
    body = "".join(_row("td", row, words) for row in rows)
    return _titled(title, f"<table><thead>{_row('th', columns, words)}</thead><tbody>{body}</tbody></table>")


def percent(fraction: float | None) -> str:
    """``71.2 %``, and nothing of what is not known."""
    return "" if fraction is None else f"{100 * fraction:.1f} %"


def _row(cell: str, values: Sequence[object], words: Sequence[int]) -> str:
    cells = (
        f'<{cell} style="{_CELL.format("left" if place in words else "right")}">{text(value)}</{cell}>'
        for place, value in enumerate(values)
    )
    return f"<tr>{''.join(cells)}</tr>"


def _titled(title: str, body: str) -> str:
    return f'<div class="gcond"><strong>{text(title)}</strong>{body}</div>'
