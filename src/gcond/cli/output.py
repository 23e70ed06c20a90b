"""The output for people and programs: results on stdout, everything else on stderr."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console, RenderableType

from gcond.runtime.plain_text import printable
from gcond.runtime.progress_tick import Tick, ignore

# Of what is not written to a window and for which $COLUMNS says nothing else: a table is so wide, or as wide as its
# numbers and longest words need.
_PIPED_WIDTH = 120
_UNLIMITED = 10_000
# Leaves room for a name and a few figures beside it in a window of 80 columns.
_BAR_WIDTH = 16


@dataclass(frozen=True)
class Voice:
    """The way a command speaks: ``json`` keeps stdout for one object, ``quiet`` stderr for errors and warnings."""

    json: bool = False
    quiet: bool = False
    _held: list[str] = field(default_factory=list)

    def result(self, payload: dict[str, Any], *shown: RenderableType) -> None:
        """The outcome: one JSON object, or the tables and lines ``shown`` to people."""
        for text in self._held:
            _line("warning", text)
        self._held.clear()
        if self.json:
            print(json.dumps(payload, allow_nan=False))
            return
        console = _console(sys.stdout)
        for part in shown:
            plain = printable(part) if isinstance(part, str) else part
            width = None if console.is_terminal else max(_piped_width(), console.measure(plain).minimum)
            console.print(plain, markup=False, highlight=False, soft_wrap=isinstance(part, str), width=width)

    def note(self, text: str) -> None:
        """A plain line on stderr for people; nothing when quiet."""
        if not self.quiet:
            _line("note", text)

    def warn(self, text: str) -> None:
        """A line on stderr on what may make a result wrong; when quiet it comes with the result, if there is one."""
        if self.quiet:
            self._held.append(text)
        else:
            _line("warning", text)

    @contextmanager
    def progress(self, what: str) -> Iterator[Tick]:
        """A bar on stderr with rate and time left; silent when quiet or without a terminal.

        Until its first tick the bar only shows that work is going on, for work that cannot be counted.
        """
        console = _console(sys.stderr)
        if self.quiet or not console.is_terminal:
            yield ignore
            return
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

        columns = (
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            TextColumn("{task.fields[detail]}", markup=False),
            BarColumn(_BAR_WIDTH),
            TextColumn("{task.fields[rate]}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
        )
        with Progress(*columns, console=console, transient=True, refresh_per_second=4) as bar:
            what = printable(what)
            task = bar.add_task(what, total=None, rate="", detail="")
            current = what

            def tick(what: str, done: float, total: float, detail: str = "") -> None:
                nonlocal current
                what, detail = printable(what), printable(detail)
                if what != current:
                    current = what
                    bar.reset(task, description=what, total=total, completed=0, rate="", detail=detail)
                bar.update(task, completed=done, total=total, rate=_rate(bar.tasks[0].speed), detail=detail)

            yield tick


def fail(sentence: str) -> None:
    """The one line of an error, on stderr, without a line break inside."""
    _line("gcond", " ".join(sentence.split()))


def _line(who: str, text: str) -> None:
    print(f"{who}: {printable(text.replace(chr(10), ' '))}", file=sys.stderr)


class _Console(Console):
    def on_broken_pipe(self) -> None:
        raise BrokenPipeError  # rich would exit here; how a command ends is decided in one place


def _console(stream: Any) -> Console:
    return _Console(file=stream, width=None if stream.isatty() else _UNLIMITED, highlight=False)


def _piped_width() -> int:
    said = os.environ.get("COLUMNS", "")
    return int(said) if said.isdecimal() and int(said) else _PIPED_WIDTH


def _rate(speed: float | None) -> str:
    if not speed:
        return ""
    for size, letter in ((10**9, " G"), (10**6, " M")):
        if speed >= size:
            return f"{speed / size:,.1f}{letter}/s"
    return f"{speed:,.0f}/s" if speed >= 10 else f"{speed:.1f}/s"
