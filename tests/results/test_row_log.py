"""Trials survive kills, refuse foreign files and are shared by processes."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gcond.errors import GcondError
from gcond.results.row_log import RowLog
from gcond.results.trial import Trial, trial_key


def TrialLog(path: Path | None) -> RowLog[Trial]:  # noqa: N802
    return RowLog(path, Trial, "trial")


def trial(key: str = "k", seed: int = 0, test: float = 0.5) -> Trial:
    return Trial(
        key=key, source="s", condensed=None, model="gcn", seed=seed, val=0.4, test=test, epoch=3, cpu_seconds=1.0
    )


def test_what_is_added_is_found_again(tmp_path: Path) -> None:
    path = tmp_path / "trials.jsonl"
    log = TrialLog(path)
    log.add(trial(seed=1))
    log.add(trial(key="other", seed=1, test=0.75))
    again = TrialLog(path)
    assert again.find("k", 1) == trial(seed=1)
    assert again.find("other", 1) == trial(key="other", seed=1, test=0.75)
    assert again.find("k", 2) is None


def test_without_a_path_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    log = TrialLog(None)
    log.add(trial())
    assert log.find("k", 0) == trial()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("cut", [1, 5, 40])
def test_a_row_cut_off_by_a_kill_runs_again_and_harms_no_other(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "trials.jsonl"
    TrialLog(path).add(trial(seed=0))
    TrialLog(path).add(trial(seed=1))
    path.write_bytes(path.read_bytes()[:-cut])
    log = TrialLog(path)
    assert log.find("k", 0) == trial(seed=0)
    if cut > 1:
        assert log.find("k", 1) is None
    log.add(trial(seed=2))
    again = TrialLog(path)
    assert again.find("k", 0) == trial(seed=0)
    assert again.find("k", 2) == trial(seed=2)


@pytest.mark.parametrize("left", [1, 13, 14, 60, -2])
def test_a_file_whose_only_row_was_cut_off_is_one_of_trials(tmp_path: Path, left: int) -> None:
    path = tmp_path / "trials.jsonl"
    TrialLog(path).add(trial(seed=0))
    path.write_bytes(path.read_bytes()[:left])
    log = TrialLog(path)
    assert log.find("k", 0) is None
    log.add(trial(seed=1))
    assert TrialLog(path).find("k", 1) == trial(seed=1)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("seed", "0"),
        ("seed", 1.5),
        ("seed", None),
        ("test", "x"),
        ("test", "0.5"),
        ("test", float("nan")),
        ("val", 1.5),
        ("epoch", 0),
        ("cpu_seconds", float("inf")),
        ("condensed", 3),
        ("model", None),
    ],
)
def test_a_row_that_was_changed_is_named(tmp_path: Path, name: str, value: object) -> None:
    path = tmp_path / "trials.jsonl"
    TrialLog(path).add(trial(seed=0))
    row = dataclasses.asdict(trial(seed=1)) | {name: value}
    with path.open("a") as file:
        file.write(json.dumps(row) + "\n")
    with pytest.raises(GcondError, match=f"^line 2 of '.*' is no trial, its {name} is wrong"):
        TrialLog(path)


def test_a_write_that_stops_half_way_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "trials.jsonl"
    TrialLog(path).add(trial(seed=0))
    write = os.write
    monkeypatch.setattr(os, "write", lambda handle, row: write(handle, row[:20]))
    with pytest.raises(GcondError, match=r"cannot write '.*trials.jsonl': the disk is full"):
        TrialLog(path).add(trial(seed=1))
    monkeypatch.undo()
    log = TrialLog(path)
    assert log.find("k", 0) == trial(seed=0)
    assert log.find("k", 1) is None


@pytest.mark.parametrize(
    "text", ["hello\n", "hello", "[" * 100_000, '{"x', '{"a": 1}\n', "[]\n", "\x00\x01\n", '{"key": "k"}\n']
)
def test_a_foreign_file_is_refused_and_left_alone(tmp_path: Path, text: str) -> None:
    path = tmp_path / "notes.txt"
    path.write_text(text)
    with pytest.raises(GcondError, match="not a file of trials"):
        TrialLog(path)
    assert path.read_text() == text


def test_a_folder_that_is_missing_is_said(tmp_path: Path) -> None:
    with pytest.raises(GcondError, match="does not exist"):
        TrialLog(tmp_path / "nowhere" / "t.jsonl").add(trial())


ADD_FIFTY = """
import sys
from gcond.results.row_log import RowLog
from gcond.results.trial import Trial
log = RowLog(sys.argv[1], Trial, "trial")
for seed in range(50):
    row = dict(source="s", condensed=None, model="gcn", test=0.5, val=0.4, epoch=3, cpu_seconds=1.0)
    log.add(Trial(key=sys.argv[2], seed=seed, **row))
"""


@pytest.mark.slow
def test_two_processes_share_a_file(tmp_path: Path) -> None:
    path = tmp_path / "trials.jsonl"
    workers = [subprocess.Popen([sys.executable, "-c", ADD_FIFTY, str(path), key]) for key in ("a", "b")]
    assert [worker.wait() for worker in workers] == [0, 0]
    log = TrialLog(path)
    assert all(log.find(key, seed) == trial(key=key, seed=seed) for key in ("a", "b") for seed in range(50))
    assert len(path.read_text().splitlines()) == 100


def test_what_others_added_is_found_after_a_refresh(tmp_path: Path) -> None:
    path = tmp_path / "trials.jsonl"
    mine, other = TrialLog(path), TrialLog(path)
    other.add(trial(seed=1))
    mine.add(trial(seed=0))
    other.add(trial(seed=2))
    assert mine.find("k", 1) is None
    mine.refresh()
    assert [mine.find("k", seed) for seed in range(3)] == [trial(seed=seed) for seed in range(3)]


def test_the_key_depends_on_content_and_not_on_order() -> None:
    assert trial_key({"a": 1, "b": [1, 2]}) == trial_key({"b": [1, 2], "a": 1})
    assert trial_key({"a": 1}) != trial_key({"a": 2})


def test_rows_of_a_version_that_kept_less_are_read(tmp_path: Path) -> None:
    path = tmp_path / "trials.jsonl"
    row = dataclasses.asdict(trial())
    for name in ("confusion", "epochs", "looks"):
        del row[name]
    path.write_text(json.dumps(row, sort_keys=True) + "\n")
    assert TrialLog(path).find("k", 0) == trial()
    TrialLog(path).add(dataclasses.replace(trial(seed=1), confusion=((3, 0), (1, 2))))
    found = TrialLog(path).find("k", 1)
    assert found is not None
    assert found.confusion == ((3, 0), (1, 2))


@pytest.mark.parametrize("confusion", [((1, 2),), ((1, -1), (0, 0)), ((0.5, 1), (1, 1)), "1"])
def test_a_row_with_no_confusion_matrix_is_refused(tmp_path: Path, confusion: object) -> None:
    path = tmp_path / "trials.jsonl"
    path.write_text(json.dumps(dataclasses.asdict(trial()) | {"confusion": confusion}, sort_keys=True) + "\n")
    with pytest.raises(GcondError, match="line 1"):
        TrialLog(path)
