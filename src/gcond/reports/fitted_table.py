"""A table drawn as wide as its window: headings and long words are broken into lines, numbers never."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rich.box import SIMPLE
from rich.cells import cell_len
from rich.measure import Measurement
from rich.table import Table as RichTable
from rich.text import Text

from gcond.runtime.plain_text import spelled_for

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

LONGEST_NAME = 32
"""Letters of a cell of words that is kept in one line: names and marks, but not sentences or lists of settings."""
_LEAST_WORDS = 16
"""Letters of a line of words that is broken, where even the longest of them does not fit."""


@dataclass(frozen=True)
class FittedTable:
    """What rich draws. By itself it would make a column of words vanish before it breaks a heading."""

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    title: str
    numbers: Sequence[bool]
    """Of each column, whether it holds numbers, which line up on the right."""
    tight: bool

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        fit = self._spelled(console.encoding)
        yield fit._drawn(fit._widths(options.max_width - self._between))

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        """At least as wide as no word has to be broken."""
        fit = self._spelled(console.encoding)
        least, most = (self._between + sum(each) for each in (fit._least(), fit._natural()))
        return Measurement(max(least, 1), max(most, 1))

    def _spelled(self, encoding: str) -> FittedTable:
        """The same in letters that ``encoding`` has: spelled later, rows would be longer than others."""
        rows = [[spelled_for(encoding, cell) for cell in row] for row in self.rows]
        headings = [spelled_for(encoding, heading) for heading in self.headings]
        return replace(self, headings=headings, rows=rows)

    @property
    def _between(self) -> int:
        """Letters that are neither heading nor cell: the margin, and what separates columns."""
        count = len(self.headings)
        return 2 + max(count - 1, 0) + (0 if self.tight else 2 * count)

    def _widths(self, room: int) -> list[int] | None:
        """The width of each column within ``room``; ``None`` where the numbers alone take more."""
        natural = self._natural()
        for least in (self._least(), self._least(_LEAST_WORDS)):
            if sum(least) <= room:
                return _shared(room, least, natural)
        return None

    def _natural(self) -> list[int]:
        return [_widest([heading, *cells]) for heading, cells in self._columns()]

    def _least(self, words: int | None = None) -> list[int]:
        """The width below which cells would be cut; ``words`` is enough for those that may be broken anywhere."""
        found = []
        for (heading, cells), number in zip(self._columns(), self.numbers, strict=True):
            if number or _widest(cells) <= LONGEST_NAME:
                found.append(_widest([*cells, *heading.split()]))
            else:
                longest = _widest([part for cell in [*cells, heading] for part in cell.split()])
                found.append(longest if words is None else min(longest, words))
        return found

    def _columns(self) -> list[tuple[str, list[str]]]:
        return [(heading, [row[place] for row in self.rows]) for place, heading in enumerate(self.headings)]

    def _drawn(self, widths: list[int] | None) -> RichTable:
        table = RichTable(
            box=SIMPLE,
            show_header=any(self.headings),
            title=Text(self.title) if self.title else None,
            title_justify="left",
            padding=(0, 0) if self.tight else (0, 1),
        )
        for place, (heading, number) in enumerate(zip(self.headings, self.numbers, strict=True)):
            width = widths[place] if widths is not None else None
            # Without room for all, the first column says what a row is about: others make room for it.
            keep = widths is None and (number or place == 0)
            table.add_column(
                Text(heading),
                justify="right" if number else "left",
                width=width,
                no_wrap=keep,
                overflow="ellipsis" if widths is None else "fold",
            )
        for row in self.rows:
            table.add_row(*map(Text, row))
        return table


def _widest(texts: Sequence[str]) -> int:
    return max((cell_len(line) for text in texts for line in text.split("\n")), default=0)


def _shared(room: int, least: Sequence[int], natural: Sequence[int]) -> list[int]:
    """Widths from ``least`` to ``natural`` that take up ``room``, the wide ones alike."""

    def at(level: int) -> list[int]:
        return [max(low, min(level, high)) for low, high in zip(least, natural, strict=True)]

    level = max((each for each in range(max(natural, default=0) + 1) if sum(at(each)) <= room), default=0)
    widths = at(level)
    for place, high in enumerate(natural):  # what is left goes to the first columns that can use it
        if widths[place] < high and sum(widths) < room:
            widths[place] += 1
    return widths
