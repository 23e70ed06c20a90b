from __future__ import annotations

import dataclasses

import pytest
import torch

from gcond.callbacks import Callback
from gcond.callbacks.deadline import OUT_OF_TIME
from gcond.condensed import Compaction, CondensedGraph
from gcond.data import load
from gcond.errors import GcondError
from gcond.matching.probe import Probe
from gcond.methods import compact as compaction
from gcond.methods.compact import choose, compact, ladder
from gcond.methods.condense import condense
from gcond.methods.gcond_x import GCondX
from gcond.methods.grow import grow
from gcond.training import Recipe

QUICK = {"epochs": 2, "outer": 2, "inner": 1, "hidden": 8, "probe_every": 0}


@pytest.fixture(autouse=True)
def brief(monkeypatch):
    monkeypatch.setattr(compaction, "RECIPE", Recipe(epochs=10, select="last"))
    monkeypatch.setattr(Probe, "recipe", Recipe(epochs=10))


@pytest.fixture
def wide(make_graph):
    return make_graph(features=128)


@pytest.fixture
def judged(monkeypatch):
    """Let accuracy be told by a rule, and how many of 1,000 classes are others by another; what was asked is noted."""
    asked = []

    def set_rule(rule, others=lambda small: 0):
        def reached(small, val, seed, metric):
            asked.append(small)
            classes = torch.zeros(1, 1_000, dtype=torch.long)
            classes[0, : others(small)] = 1
            return compaction.Reached(rule(small), classes)

        monkeypatch.setattr(compaction, "_reached", reached)
        return asked

    return set_rule


def fullest(small):
    return int(torch.count_nonzero(small.x, dim=1).max())


def cut_by(small, place):
    """The cut at that place of the ladder."""
    return ladder(small)[place]


def fine(small, place):
    """Whether a graph is cut no more than by that place of the ladder of ``small``."""
    least = small.compacted(cut_by(small, place)).nbytes
    return lambda graph: graph.nbytes >= least


def test_the_ladder_goes_from_strong_to_weak_and_ends_with_no_change(wide):
    small = condense(wide, method="random", nodes=9)
    rungs = ladder(small)
    bytes_ = [small.compacted(rung).nbytes for rung in rungs]
    assert bytes_ == sorted(bytes_)
    assert all(rung.entries is None for rung in rungs)
    steps = [rung.step for rung in rungs if rung.step]
    assert steps == sorted(steps, reverse=True)
    assert steps[0] / steps[-1] == pytest.approx(2**2.5)
    assert [rung.bits for rung in rungs if not rung.step] == [8, 16, 32]
    assert rungs[-1] == Compaction(None, 32)
    assert small.compacted(rungs[-1]).sha256 == small.sha256
    assert len(set(rungs)) == len(rungs)


def test_features_of_no_usual_scale_have_no_steps(wide):
    small = condense(wide, method="random", nodes=9)
    small = dataclasses.replace(small, x=small.x * 1e-35)
    rungs = ladder(small)
    assert sorted(rung.bits for rung in rungs) == [8, 16, 32]
    assert all(rung.step is None for rung in rungs)
    with pytest.raises(GcondError, match=r"step=0\.25 of features whose root mean .* give bits=8"):
        compact(small, step=0.25)


def test_features_that_are_all_zero_are_multiples_of_any_step(wide, judged, tmp_path):
    small = condense(wide, method="random", nodes=9)
    small = dataclasses.replace(small, x=torch.zeros_like(small.x))
    made = compact(small, step=0.25)
    assert torch.equal(made.x, small.x)
    made.save(tmp_path / "zeros")
    assert CondensedGraph.load(tmp_path / "zeros").sha256 == made.sha256
    judged(lambda graph: 0.3)
    assert compact(small, on=wide).nbytes <= made.nbytes


def test_a_compact_graph_never_becomes_larger(wide, judged):
    small = compact(condense(wide, method="random", nodes=9), step=1.0)
    judged(lambda graph: 0.8 if graph.sha256 == small.sha256 else 0.1)
    made = compact(small, on=wide)
    assert (made.compaction, made.sha256, made.nbytes) == (small.compaction, small.sha256, small.nbytes)
    assert made.provenance.compaction["ladder"][-1]["bytes"] == small.nbytes
    judged(lambda graph: 0.8)
    assert compact(small, on=wide).nbytes <= small.nbytes


def test_with_entries_given_all_cuts_have_them(wide):
    small = condense(wide, method="random", nodes=9)
    assert {rung.entries for rung in ladder(small, 20)} == {20}
    assert {rung.entries for rung in ladder(small, 128)} == {None}


def test_the_strongest_cut_that_holds_is_taken_and_written_down(wide, judged):
    small = condense(wide, method="random", nodes=9)
    good = fine(small, 2)
    judged(lambda graph: 0.8 if good(graph) else 0.7)
    made = compact(small, on=wide)
    assert made.compaction == cut_by(small, 2)
    record = made.provenance.compaction
    assert record["compacted_from"] == small.sha256
    assert record["bytes_before"] == small.nbytes
    assert record["bytes_after"] == made.nbytes < small.nbytes
    assert record["val_accuracy"] == 0.8
    assert record["tolerance"] == compaction.TOLERANCE
    assert [rung["val_accuracy"] for rung in record["ladder"]] == [0.7, 0.7, 0.8]
    assert record["ladder"][-1]["step"] == record["step"] == made.compaction.step
    assert record["ladder"][-1]["changed"] == 0
    assert "bits" not in record
    assert record["ladder"][-1]["bytes"] == made.nbytes


def test_a_loss_within_the_tolerance_is_taken(wide, judged):
    small = condense(wide, method="random", nodes=9)
    judged(lambda graph: 0.8 if graph.sha256 == small.sha256 else 0.797)
    assert compact(small, on=wide, tolerance=0.0025).compaction == cut_by(small, 0)
    assert compact(small, on=wide, tolerance=0.001).compaction == Compaction(None, 32)


def test_a_little_more_may_be_lost_where_the_bytes_are_many(wide, judged, monkeypatch):
    small = condense(wide, method="random", nodes=9)
    monkeypatch.setattr(compaction, "FEW", (small.compacted(cut_by(small, 3)).nbytes + 0.5) / wide.nbytes)
    monkeypatch.setattr(compaction, "ENOUGH", 0.0)
    bytes_ = {cut: small.compacted(cut).nbytes for cut in ladder(small)}
    few = [cut for cut, size in bytes_.items() if size <= compaction.FEW * wide.nbytes]
    assert 1 < len(few) < len(bytes_)

    def rule(loss):
        return lambda graph: 0.8 if graph.nbytes > compaction.FEW * wide.nbytes else 0.8 - loss

    judged(rule(0.0028), lambda graph: 6 * bool(graph.compaction))
    made = compact(small, on=wide)
    assert made.compaction == few[-1]  # the weakest
    taken = made.provenance.compaction
    assert taken["step"] == few[-1].step
    assert len(taken["ladder"]) == len(few) + 1
    judged(rule(0.0032), lambda graph: 6 * bool(graph.compaction))
    assert compact(small, on=wide).compaction not in few


def test_a_cut_below_what_is_enough_must_change_few_classes(wide, judged, monkeypatch):
    small = condense(wide, method="random", nodes=9)
    monkeypatch.setattr(compaction, "ENOUGH", 1.0)
    same = fine(small, 2)
    judged(lambda graph: 0.8, lambda graph: 5 if same(graph) and graph.compaction else 6 * bool(graph.compaction))
    made = compact(small, on=wide)
    assert made.compaction == cut_by(small, 2)
    assert [rung["changed"] for rung in made.provenance.compaction["ladder"]] == [0.006, 0.006, 0.005]


def test_one_that_changes_few_classes_may_cost_a_little_more(wide, judged, monkeypatch):
    small = condense(wide, method="random", nodes=9)
    for changed, enough, taken in ((5, 1.0, 0), (6, 1.0, -1), (6, 0.0, -1)):
        monkeypatch.setattr(compaction, "ENOUGH", enough)
        monkeypatch.setattr(compaction, "FEW", 0.0)
        judged(
            lambda graph: 0.8 if graph.sha256 == small.sha256 else 0.7972,
            lambda graph, changed=changed: 0 if graph.sha256 == small.sha256 else changed,
        )
        assert compact(small, on=wide).compaction == cut_by(small, taken)


def test_a_cut_above_it_need_not(wide, judged, monkeypatch):
    small = condense(wide, method="random", nodes=9)
    size = small.compacted(cut_by(small, 1)).nbytes
    monkeypatch.setattr(compaction, "ENOUGH", size / wide.nbytes)
    judged(lambda graph: 0.8, lambda graph: 100 * bool(graph.compaction))
    assert compact(small, on=wide).nbytes == size


def test_models_that_diverge_give_no_class(wide, judged, monkeypatch):
    assert compaction.Reached(0.0).differs(compaction.Reached(0.5, torch.zeros(1, 3))) == 1.0


def test_classes_are_asked_of_nodes_that_validation_sees_and_of_no_more_than_needed(wide, monkeypatch):
    val = wide.view("val")
    assert len(compaction._asked(val).nodes) == val.inputs.num_nodes
    monkeypatch.setattr(compaction, "ASKED", 7)
    asked = compaction._asked(val)
    assert len(set(asked.nodes.tolist())) == 7
    assert not asked.y.any()


def test_where_nothing_may_be_cut_only_the_form_changes(wide, judged):
    small = condense(wide, method="random", nodes=9)
    judged(lambda graph: 0.8 if graph.sha256 == small.sha256 else 0.1)
    made = compact(small, on=wide)
    assert made.compaction == Compaction(None, 32)
    assert made.sha256 == small.sha256


def test_the_same_seeds_judge_the_same(wide):
    small = condense(wide, method="random", nodes=9)
    assert choose(small, wide, 3).rungs == choose(small, wide, 3).rungs


def test_test_labels_are_not_read(wide):
    y = wide.y.clone()
    y[wide.test_mask] = (y[wide.test_mask] + 1) % wide.num_classes
    small = condense(wide, method="random", nodes=9)
    first, other = choose(small, wide, 0), choose(small, dataclasses.replace(wide, y=y), 0)
    assert (first.uncut, first.rungs) == (other.uncut, other.rungs)


def test_a_cut_that_is_given_needs_no_source(wide, judged):
    asked = judged(lambda graph: 0.5)
    small = condense(wide, method="random", nodes=9)
    assert compact(small, entries=7).compaction == Compaction(7, 8)
    assert compact(small, bits=16).compaction == Compaction(None, 16)
    assert "ladder" not in compact(small, entries=7, bits=4).provenance.compaction
    step = compact(small, step=0.25).compaction.step
    assert step == pytest.approx(0.25 * float(small.x.square().mean().sqrt()))
    assert compact(small, entries=7, step=0.25).compaction == Compaction(7, step=step)
    assert not asked
    for wrong in (0, -1, float("nan")):
        with pytest.raises(GcondError, match="is no share of the features' root mean square"):
            compact(small, step=wrong)
    with pytest.raises(GcondError, match="judged on the source graph: give on=SOURCE, or say it yourself"):
        compact(small)


def test_from_a_file_and_without_provenance(wide, tmp_path):
    small = dataclasses.replace(condense(wide, method="random", nodes=9), provenance=None)
    small.save(tmp_path / "g")
    made = compact(tmp_path / "g", on=wide)
    assert made.provenance is None
    assert made.compaction is not None
    made.save(tmp_path / "h")
    assert CondensedGraph.load(tmp_path / "h").sha256 == made.sha256


def test_another_source_or_one_without_validation_is_refused(wide, make_graph):
    small = condense(wide, method="random", nodes=9)
    with pytest.raises(GcondError, match="has 128 features and 'random-0' has 12: give the source it was made from"):
        compact(small, on=make_graph())
    blind = dataclasses.replace(wide, val_mask=torch.zeros_like(wide.val_mask))
    with pytest.raises(GcondError, match="there is no validation node to judge a cut by"):
        compact(small, on=blind)
    with pytest.raises(GcondError, match="tolerance=-1 is no share of accuracy"):
        compact(small, on=wide, tolerance=-1)


def test_features_are_learned_with_the_cut_in_place(wide, judged):
    judged(lambda graph: 0.8)
    made = condense(wide, method="gcond-x", nodes=9, compact=True, **QUICK)
    start = condense(wide, method="gcond-x", nodes=9, **QUICK | {"epochs": 0})
    entries = fullest(start.compacted(cut_by(start, 0)))
    assert entries < 128
    assert made.compaction.entries == made.provenance.settings["entries"] == entries
    assert made.provenance.compaction["start"]["step"] == cut_by(start, 0).step
    learned = condense(wide, method="gcond-x", nodes=9, entries=entries, **QUICK)
    assert made.provenance.compaction["compacted_from"] == learned.sha256
    assert fullest(learned) == entries
    assert torch.equal(learned.compacted(made.compaction).x, made.x)


class Hurry(Callback):
    """No time any more after so many questions; notes what is asked and what is announced."""

    def __init__(self, questions):
        self.left, self.asked, self.announced = questions, [], []

    def comes_after(self, seconds):
        self.announced.append(seconds)

    def has_time(self, seconds):
        self.asked.append(seconds)
        self.left -= 1
        return self.left >= 0

    def on_start(self, run):
        if self.left <= 0:
            run.stop("in a hurry", look=False)


def test_the_first_choice_stays_where_the_result_is_the_start(wide, judged):
    asked = judged(lambda graph: 0.8)
    start = condense(wide, method="gcond-x", nodes=9, compact=True, **QUICK | {"epochs": 0})
    assert len(asked) == 2  # the start, and one cut of it
    record = start.provenance.compaction
    assert "start" not in record
    assert record["ladder"][-1]["step"] == start.compaction.step
    plain = condense(wide, method="gcond-x", nodes=9, **QUICK | {"epochs": 0})
    assert torch.equal(start.x, plain.compacted(start.compaction).x)


def test_without_time_for_the_last_choice_the_cut_of_the_start_is_taken(wide, judged):
    asked, hurry = judged(lambda graph: 0.8), Hurry(3)  # for the start, and one cut of it: is there time, and for two?
    hurry.on_start = lambda run: None
    made = condense(wide, method="gcond-x", nodes=9, compact=True, callbacks=[hurry], **QUICK)
    assert len(asked) == 2
    assert hurry.asked[-1] == hurry.announced[0]
    record = made.provenance.compaction
    assert made.compaction.step == record["step"] == record["start"]["step"]
    assert record["ended"] == OUT_OF_TIME
    assert "ladder" not in record


def test_time_that_is_up_before_learning_leaves_the_start_and_its_choice(wide, judged):
    asked, hurry = judged(lambda graph: 0.8), Hurry(3)
    made = condense(wide, method="gcond-x", nodes=9, compact=True, callbacks=[hurry], **QUICK)
    assert made.provenance.history["loss"] == []
    assert len(asked) == 2
    assert "start" not in made.provenance.compaction


@pytest.mark.parametrize(("lost", "place"), [(0.0028, 1), (0.0032, None)])
def test_the_clock_is_asked_between_two_cuts(wide, judged, lost, place):
    small = condense(wide, method="random", nodes=9)
    judged(lambda graph: 0.8 if graph.sha256 == small.sha256 else 0.8 - lost, lambda graph: 6 * bool(graph.compaction))
    found = choose(small, wide, 0, has_time=Hurry(5).has_time)
    assert found.ended == OUT_OF_TIME
    assert len(found.rungs) == 2 if place is not None else 3
    assert found.compaction == (Compaction(None, 32) if place is None else cut_by(small, place))
    assert found.compaction == found.rungs[-1].compaction
    other = choose(small, wide, 0, has_time=Hurry(5).has_time, otherwise=Compaction(None, 16))
    assert other.compaction == (Compaction(None, 16) if place is None else cut_by(small, place))
    assert choose(small, wide, 0, has_time=Hurry(0).has_time).compaction == Compaction(None, 32)


def test_where_time_is_for_one_cut_alone_it_is_the_weakest_of_few_bytes(wide, judged, monkeypatch):
    small = condense(wide, method="random", nodes=9)
    monkeypatch.setattr(compaction, "FEW", (small.compacted(cut_by(small, 3)).nbytes + 0.5) / wide.nbytes)
    good = fine(small, 2)
    judged(lambda graph: 0.8 if good(graph) else 0.7)
    found = choose(small, wide, 0, has_time=Hurry(2).has_time)
    assert [rung.compaction for rung in found.rungs] == [found.compaction]
    few = [cut for cut in ladder(small) if small.compacted(cut).nbytes <= compaction.FEW * wide.nbytes]
    assert found.compaction == few[-1]
    for changed, taken in ((5, few[-1]), (6, Compaction(None, 32))):
        judged(
            lambda graph: 0.8 if graph.sha256 == small.sha256 else 0.7,
            lambda graph, changed=changed: changed * bool(graph.compaction),
        )
        assert choose(small, wide, 0, has_time=Hurry(2).has_time).compaction == taken


def test_entries_of_the_method_itself_are_kept(wide, judged):
    asked = judged(lambda graph: 0.8)
    made = condense(wide, method=GCondX(entries=11, **QUICK), nodes=9, compact=True)
    assert made.compaction.entries == 11
    assert made.compaction.step
    assert all(fullest(graph) <= 11 for graph in asked)
    assert "start" not in made.provenance.compaction


def test_probes_see_the_cut(wide, monkeypatch):
    seen = []
    monkeypatch.setattr(Probe, "accuracy", lambda self, view: seen.append(view.inputs.x.clone()) or len(seen) / 9)
    # No teacher, since what it is chosen by are probes of its own.
    start = {"teacher": "none", "init": "propagated-means"}
    small = condense(wide, method="gcond-x", nodes=9, entries=5, **QUICK | {"probe_every": 1} | start)
    assert len(seen) >= 2  # the start and the end
    assert all(int(torch.count_nonzero(x, dim=1).max()) == 5 for x in seen)
    assert torch.equal(small.x, seen[-1])


def test_what_is_selected_is_compacted_too(wide, judged):
    judged(lambda graph: 0.8)
    made = condense(wide, method="herding", nodes=9, compact=True)
    assert made.compaction.step
    assert made.source_index is not None


def test_the_weights_of_a_structure_go_unless_they_are_to_stay(wide):
    small = condense(wide, method="gcond", nodes=9, structure_hidden=8, **QUICK)
    assert small.structure
    assert not compact(small, entries=5).structure
    kept = compact(small, entries=5, keep_structure=True)
    assert kept.structure.keys() == small.structure.keys()
    larger = grow(kept, on=wide, nodes=11)
    assert torch.equal(larger.x[:9], kept.x)
    with pytest.raises(GcondError, match="dropped when it was compacted"):
        grow(compact(small, entries=5), on=wide, nodes=11)


def test_digests_of_the_source_go_unless_they_are_to_stay(wide):
    small = condense(wide, method="random", nodes=9)
    assert small.digests is not None
    assert compact(small, entries=5).digests is None
    kept = compact(small, entries=5, keep_digests=True)
    assert torch.equal(kept.digests.features, small.digests.features)
    assert kept.sha256 == compact(small, entries=5).sha256


@pytest.mark.parametrize("method", ["herding", "gcond-x"])
def test_condensing_drops_them_too(wide, judged, method):
    judged(lambda graph: 0.8)
    options = QUICK if method == "gcond-x" else {}
    assert condense(wide, method=method, nodes=9, compact=True, **options).digests is None
    kept = condense(wide, method=method, nodes=9, compact=True, keep_digests=True, **options)
    assert len(kept.digests) == wide.num_nodes
    with pytest.raises(GcondError, match="keep_digests=True is for compact=True"):
        condense(wide, method=method, nodes=9, keep_digests=True, **options)


def test_cost_counts_the_judging(wide):
    small = condense(wide, method="random", nodes=9)
    assert compact(small, on=wide).provenance.cost["cpu_seconds"] > small.provenance.cost["cpu_seconds"]


def test_a_cut_is_judged_by_the_metric_of_the_method():
    graph = load("synthetic:tiny")
    by = {"nodes": 9, "compact": True, "teacher": "ridge", "spread": "means"}
    plain = condense(graph, method="clusters", **by).provenance
    other = condense(graph, method="clusters", metric="macro-f1", **by).provenance
    assert "metric" not in plain.compaction
    assert other.compaction["metric"] == "macro-f1"
    assert other.metric == other.settings["metric"] == "macro-f1"
    assert plain.compaction["val_accuracy"] != other.compaction["val_accuracy"]
