"""What an audit tells, and files that are damaged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gcond.errors import GcondError
from gcond.results import Audit, Observation, RunFolder
from gcond.results.row_log import RowLog
from reports.sample_runs import audit


def test_it_comes_back_from_its_file(tmp_path: Path) -> None:
    found = audit()
    assert Audit.load(found.save(tmp_path).parent) == found
    assert RunFolder(tmp_path).audit() == found
    values = json.loads((tmp_path / "audit.json").read_text())
    assert values == json.loads(json.dumps(found.to_json()))
    assert values["kind"] == "audit"


def test_what_a_later_version_added_is_passed_over(tmp_path: Path) -> None:
    audit().save(tmp_path)
    file = tmp_path / "audit.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "more": 1}))
    assert Audit.load(tmp_path) == audit()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"kind": "tune"}, "it is 'tune' and not 'audit'"),
        ({"noise": {"labels": 2}}, "noise"),
        ({"subjects": 3}, "subjects"),
        ({"seeds": -1}, "seeds"),
        ({"accuracies": [{"subject": "x"}]}, "accuracies"),
    ],
)
def test_damaged_files_are_refused_in_a_sentence(tmp_path: Path, change: dict, reason: str) -> None:
    audit().save(tmp_path)
    file = tmp_path / "audit.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **change}))
    with pytest.raises(GcondError, match="cannot be read") as refused:
        Audit.load(tmp_path)
    assert reason in str(refused.value)


def test_lookups() -> None:
    found = audit()
    assert found.accuracy("whole graph", "gcn").mean == 0.8
    assert found.accuracy("whole graph", "gcn", "before", "labels").mean == pytest.approx(0.7)
    assert found.accuracy("whole graph", "gcn", "before", "edges") is None
    assert found.noises("before") == ("features", "labels", "features+labels")
    assert "it rained" in found._repr_html_()


def test_observations_come_back_from_their_log(tmp_path: Path) -> None:
    row = Observation("k", 1, "gcn", {"the source": ((1, 2), (0, 3))}, 0.5, (-0.25, -1e-9), (-3.5,))
    RowLog(tmp_path / "log.jsonl", Observation, "observation").add(row)
    assert RowLog(tmp_path / "log.jsonl", Observation, "observation").find("k", 1) == row
