"""Progress is told in words and counts."""

from __future__ import annotations

import io
import re

import pytest

from gcond.cli.output import Voice
from gcond.runtime.progress_tick import count


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_bar_goes_on_when_the_work_changes(monkeypatch):
    monkeypatch.setattr("sys.stderr", shown := Terminal())
    with Voice().progress("starting") as tick:
        tick("products", 3e6, 12e6, detail="3.0 of 12.0 M entries")
        tick("rows", 5, 10, detail="5 of 10 rows")
    assert "rows 5 of 10 rows" in re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown.getvalue())


@pytest.mark.parametrize(
    ("done", "total", "told"),
    [(5, 10, "5 of 10 rows"), (1500, 4000, "1.5 of 4.0 k rows"), (2e9, 3.25e9, "2.0 of 3.2 G rows")],
)
def test_counts_are_short(done, total, told):
    assert count(done, total, "rows") == told
