"""``gcond.compare`` from Python; the command line's tests look at the rest."""

from __future__ import annotations

import pytest

import gcond
from gcond.condensing import method_for
from gcond.engines import open_engine
from gcond.errors import GcondError
from gcond.evaluation import evaluate

QUICK = {"seeds": 2, "runs": 2, "recipe": {"epochs": 4}}


def test_lines_are_what_condense_and_evaluate_give(tmp_path):
    source = gcond.load("synthetic:tiny")
    with open_engine("local", workers=1) as engine:
        found = gcond.compare(source, methods=["random"], nodes=[8], folder=tmp_path, engine=engine, **QUICK)
    whole, line = found.lines
    (score,) = evaluate(source, models=["gcn"], runs=2, recipe={"epochs": 4})
    assert (whole.mean, whole.std) == (score.mean, score.std)
    scores = []
    for seed in range(2):
        small = gcond.condense(source, method="random", nodes=8, seed=seed)
        (score,) = evaluate(small, on=source, models=["gcn"], runs=2, seed=10 * seed, recipe={"epochs": 4})
        scores += score.runs
    assert line.mean == pytest.approx(sum(scores) / 4)
    assert line.mark == "best"
    assert line.bytes < whole.bytes


def test_it_takes_what_load_takes_and_budgets_of_both_kinds(tmp_path):
    methods = [method_for("random", {}), "k-center"]
    with open_engine("local", workers=1) as engine:
        found = gcond.compare(
            "synthetic:tiny", methods=methods, ratios=["3%"], nodes=[9, 8], folder=tmp_path, engine=engine, **QUICK
        )
    assert [(line.method, line.nodes) for line in found.lines[1:]] == [
        ("random", 9),
        ("k-center", 9),
        ("random", 8),
        ("k-center", 8),
    ]


@pytest.mark.parametrize("missing", [{"methods": []}, {"nodes": []}])
def test_nothing_to_compare_is_refused(missing, tmp_path):
    options = {"methods": ["random"], "nodes": [8], **missing}
    with pytest.raises(GcondError, match="a method and a budget at least"):
        gcond.compare("synthetic:tiny", folder=tmp_path, **options)


def test_one_method_with_two_settings_is_refused(tmp_path):
    methods = [method_for("coarsening", {"variant": variant}) for variant in ("variation-neighbourhoods", "heavy-edge")]
    with pytest.raises(GcondError, match="'coarsening' is given with different settings"):
        gcond.compare("synthetic:tiny", methods=methods, nodes=[8], folder=tmp_path)
