"""How times are written."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from gcond.errors import GcondError
from gcond.runtime.stopwatch import parse_seconds, process_began


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("60s", 60), ("2min", 120), ("1h", 3600), ("90", 90), (90, 90), (0.5, 0.5), (" 1.5 H ", 5400), ("3m", 180)],
)
def test_times(text, seconds):
    assert parse_seconds(text) == seconds


@pytest.mark.parametrize(
    "bad", ["", "soon", "-5s", "0", 0, -1, "5 days", "1h30", float("inf"), float("nan"), True, None]
)
def test_what_is_no_time_is_refused_in_one_sentence(bad):
    with pytest.raises(GcondError, match=r"within=.* is not a time: write for example within='60s'"):
        parse_seconds(bad)


def test_a_process_knows_when_it_began():
    code = (
        "import time; began = time.monotonic(); time.sleep(0.3)\n"
        "from gcond.runtime.stopwatch import process_began\n"
        "print(process_began() - began)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert -60 < float(done.stdout) < 0.05  # before its first line, to the hundredth that the system counts by
    assert process_began() < time.monotonic()
