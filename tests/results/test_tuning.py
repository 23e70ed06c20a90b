"""What a search for hyper-parameters tells: agreement by its definition, costs, and files that are damaged."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gcond.errors import GcondError
from gcond.results import Tuning, rank_agreement
from reports.sample_runs import finalist, tried, tuning

VALUES = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=2, max_size=9)


@given(VALUES)
def test_kendall_and_spearman_are_those_of_the_definition(pairs: list[tuple[int, int]]) -> None:
    x, y = (np.array(side, dtype=float) for side in zip(*pairs, strict=True))
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        assert rank_agreement.kendall(x, y) is None
        assert rank_agreement.spearman(x, y) is None
        return
    signs = [(np.sign(x[i] - x[j]), np.sign(y[i] - y[j])) for i, j in combinations(range(len(x)), 2)]
    same = sum(a * b for a, b in signs)
    untied = np.sqrt(sum(a != 0 for a, _ in signs) * sum(b != 0 for _, b in signs))
    assert rank_agreement.kendall(x, y) == pytest.approx(same / untied)
    ranks = [np.array([((v < a).sum() + (v <= a).sum() + 1) / 2 for a in v]) for v in (x, y)]
    assert rank_agreement.spearman(x, y) == pytest.approx(np.corrcoef(*ranks)[0, 1])


def test_it_comes_back_from_its_file(tmp_path: Path) -> None:
    found = tuning()
    assert Tuning.load(found.save(tmp_path).parent) == found
    said = json.loads((tmp_path / "tune.json").read_text())
    assert said["kind"] == "tune"
    assert said["agreement_n"] == 3
    assert said["finalists"][0]["mean"] == pytest.approx(0.8)
    assert said["finalists"][0]["n"] == 2


def test_winner_usual_and_favourite() -> None:
    found = tuning()
    assert found.winner is found.finalists[0]
    assert found.usual is found.finalists[2]
    assert found.favourite is found.finalists[1]
    empty = replace(found, finalists=())
    assert (empty.winner, empty.usual, empty.favourite, empty.spearman) == (None, None, None, None)


def test_agreement_is_that_of_confirmed_and_whole_validation() -> None:
    found = tuning()
    assert found.spearman == pytest.approx(0.5)
    assert found.kendall == pytest.approx(1 / 3)


def test_costs_and_the_estimate() -> None:
    found = tuning()
    assert found.search_cpu_seconds == pytest.approx(sum(trial.cpu_seconds for trial in found.trials))
    assert found.confirm_cpu_seconds == pytest.approx(3)
    assert found.finalists_cpu_seconds == pytest.approx(60)
    # 60 s for 1,200 epochs on the whole graph; the search did 600 + 66 + 900 + 600.
    assert found.whole_estimate_cpu_seconds == pytest.approx(2166 * 60 / 1200)
    assert replace(found, condensed=None).whole_estimate_cpu_seconds is None
    assert replace(found, finalists=()).whole_estimate_cpu_seconds is None


def test_the_estimate_knows_models_apart() -> None:
    trials = (tried(0, usual=True, epochs=100), tried(1, model="sgc", epochs=100), tried(2, model="mlp", epochs=100))
    finalists = (finalist(0, epochs=100, cpu_seconds=100.0), finalist(1, model="sgc", epochs=100, cpu_seconds=10.0))
    found = tuning(trials=trials, finalists=finalists, ranges={"gcn": {}, "sgc": {}, "mlp": {}})
    assert found.whole_estimate_cpu_seconds == pytest.approx(100 + 10 + 55), "mlp has no finalist: the mean of all"


@pytest.mark.parametrize(
    "change",
    [
        lambda said: said.update(kind="nas"),
        lambda said: said["trials"][0].update(accuracies=[1.5]),
        lambda said: said["trials"][0].update(state="lost"),
        lambda said: said["trials"][0].update(cpu_seconds=-1),
        lambda said: said["finalists"][0].update(confirmed=[]),
        lambda said: said["finalists"][0].update(val=["x"]),
        lambda said: said["ranges"]["gcn"]["lr"].update(low=2.0),
        lambda said: said["ranges"]["gcn"].update(hidden={"values": []}),
        lambda said: said.pop("source"),
    ],
)
def test_damaged_files_are_refused_in_one_sentence(tmp_path: Path, change: Any) -> None:
    said = json.loads(tuning().save(tmp_path).read_text())
    change(said)
    (tmp_path / "tune.json").write_text(json.dumps(said))
    with pytest.raises(GcondError, match="cannot be read") as refused:
        Tuning.load(tmp_path)
    assert "\n" not in str(refused.value)


def test_the_study_keeps_what_lies_in_the_space() -> None:
    pytest.importorskip("optuna")
    study = tuning().study()
    assert [trial.state.name for trial in study.trials] == ["COMPLETE", "PRUNED", "COMPLETE", "COMPLETE"]
    assert study.best_value == pytest.approx(0.83)
    several = tuning(ranges={**tuning().ranges, "sgc": {}}).study()
    assert {trial.params["model"] for trial in several.trials} == {"gcn"}
