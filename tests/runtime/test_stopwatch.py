"""How times are written."""

from __future__ import annotations

import pytest

from gcond.errors import GcondError
from gcond.runtime.stopwatch import parse_seconds


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("60s", 60), ("2min", 120), ("1h", 3600), ("90", 90), (90, 90), (0.5, 0.5), (" 1.5 H ", 5400), ("3m", 180)],
)
def test_times(text, seconds):
    assert parse_seconds(text) == seconds


@pytest.mark.parametrize("bad", ["", "soon", "-5s", "0", 0, -1, "5 days", "1h30", float("inf"), float("nan"), True, None])
def test_what_is_no_time_is_refused_in_one_sentence(bad):
    with pytest.raises(GcondError, match=r"within=.* is not a time: write for example within='60s'"):
        parse_seconds(bad)
