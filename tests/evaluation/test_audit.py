"""``gcond.audit``: what it measures, what it leaves out and says, and how it goes on."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from sklearn.metrics import roc_auc_score

import gcond
from conftest import random_graph
from gcond.condensed import CondensedGraph
from gcond.evaluation.audit import audit as module
from gcond.evaluation.audit.repetition import repetition
from gcond.graph.perturbation import Noise, perturbed
from gcond.graph.source_graph import SourceGraph
from gcond.jobs.observed_training import asked_nodes, confidence
from gcond.jobs.training_job import training_seeds
from gcond.methods import Clusters, Random
from gcond.methods.condense import condense
from gcond.models import GCN
from gcond.results import Audit
from gcond.runtime.engines import LocalEngine

QUICK = {"epochs": 12, "seeds": 2, "runs": 2}


@pytest.fixture(scope="module")
def graph() -> SourceGraph:
    return random_graph()


@pytest.fixture(scope="module")
def small(graph) -> CondensedGraph:
    return condense(graph, method="clusters", nodes=6)


@pytest.fixture(scope="module")
def found(graph, small) -> Audit:
    with LocalEngine(workers=1) as engine:
        return gcond.audit(small, on=graph, engine=engine, **QUICK)


def audited(smalls, graph, **options) -> Audit:
    with LocalEngine(workers=1) as engine:
        return gcond.audit(smalls, on=graph, engine=engine, **{**QUICK, "seeds": 1, **options})


def test_everything_is_measured_beside_random_nodes_and_the_whole_graph(found):
    names = [one.name for one in found.subjects]
    assert names == ["whole graph", "6 random nodes", "clusters, 6 nodes"]
    assert found.noises("clean") == ("",)
    assert found.noises("before") == ("edges", "features", "labels", "edges+features+labels")
    assert found.noises("test") == ("edges", "features", "edges+features")
    for name in names:
        for stage, noises in (("clean", ("",)), ("before", found.noises("before")), ("test", found.noises("test"))):
            for noise in noises:
                one = found.accuracy(name, "gcn", stage, noise)
                assert one is not None
                assert one.n == 4
                assert one.metrics is not None
    assert [one.subject for one in found.membership] == names
    assert [(one.subject, one.space) for one in found.closeness] == [
        (name, space) for name in names[1:] for space in ("features", "propagated")
    ]
    assert (found.notes, found.failures) == ((), ())


def test_without_noise_it_is_what_evaluate_finds(found, graph, small):
    """The same seeds, so the same weights and the same test accuracies."""
    tests = []
    for seed in range(2):
        first = training_seeds(seed, 2)[0]
        tests += gcond.evaluate(small, on=graph, runs=2, seed=first, epochs=12)[0].runs
    one = found.accuracy("clusters, 6 nodes", "gcn")
    assert one.mean == pytest.approx(sum(tests) / 4)
    assert one.std == pytest.approx(float(torch.tensor(tests, dtype=torch.float64).std()))


def test_before_condensing_nothing_but_the_test_sees_what_is_true(found, graph, small):
    """By hand: condensed from the noisy graph, the epoch chosen there, tested on the graph as it is."""
    tests = []
    for seed in range(2):
        noisy = perturbed(graph, Noise(), seed)
        again = condense(noisy, method=Clusters(), nodes=6, seed=small.provenance.seed)
        for run in training_seeds(seed, 2):
            trained = gcond.train(again, on=noisy, seed=run, epochs=12)
            answers = trained.predict(graph, nodes="test")
            tests.append(float((answers.classes == answers.labels).double().mean()))
    assert found.accuracy("clusters, 6 nodes", "gcn", "before", "edges+features+labels").mean == pytest.approx(
        sum(tests) / 4
    )


def test_at_test_the_models_are_those_without_noise(found, graph, small):
    tests = []
    for seed in range(2):
        changed = perturbed(graph, Noise().only("edges", "features"), seed)
        for run in training_seeds(seed, 2):
            answers = gcond.train(small, on=graph, seed=run, epochs=12).predict(changed, nodes="test")
            tests.append(float((answers.classes == answers.labels).double().mean()))
    assert found.accuracy("clusters, 6 nodes", "gcn", "test", "edges+features").mean == pytest.approx(sum(tests) / 4)


def as_trained(trained, answers) -> torch.Tensor:
    """Probabilities as the model gives them, before they are made as sure as validation nodes allow."""
    return (answers.probabilities.log() / trained.record.sharpness).softmax(1)


def test_membership_is_scikit_learns_area_by_the_probability_of_the_label(found, graph, small):
    areas = []
    for seed in range(2):
        for run in training_seeds(seed, 2):
            trained = gcond.train(small, on=graph, seed=run, epochs=12)
            scores = []
            for part in ("train", "test"):
                answers = trained.predict(graph, nodes=part)
                scores.append(as_trained(trained, answers).gather(1, answers.labels[:, None]).squeeze(1))
            kinds = [1] * len(scores[0]) + [0] * len(scores[1])
            areas.append(roc_auc_score(kinds, torch.cat(scores).tolist()))
    one = found.membership[-1]
    assert one.subject == "clusters, 6 nodes"
    assert one.auc == pytest.approx(sum(areas) / 4, abs=1e-6)
    assert one.std == pytest.approx(float(torch.tensor(areas, dtype=torch.float64).std()), abs=1e-6)
    assert (one.members, one.others) == (int(graph.train_mask.sum()), int(graph.test_mask.sum()))
    assert one.above_whole == pytest.approx(one.auc - found.membership[0].auc)
    assert found.membership[0].above_whole is None


def random_labels(seed: int = 0) -> SourceGraph:
    """Labels that have nothing to do with anything: who knows them has seen them."""
    graph = random_graph(sizes=(200, 200), features=256, seed=seed)
    stream = torch.Generator().manual_seed(seed)
    return dataclasses.replace(graph, y=torch.randint(2, graph.y.shape, generator=stream))


def test_a_model_that_memorises_is_caught_and_one_that_saw_nothing_is_not():
    graph = random_labels()
    small = condense(graph, method="random", nodes=4)
    x = torch.randn(4, 256, generator=torch.Generator().manual_seed(1))
    stranger = dataclasses.replace(small, x=x, source_index=None, provenance=None)
    options = {"models": "mlp", "epochs": 150, "noise": {"edges": 0, "features": 0, "labels": 0}, "select": "last"}
    found = audited(stranger, graph, **options)
    whole, _, other = found.membership
    assert whole.auc > 0.9
    assert whole.low > 0.8
    assert other.subject == "unknown method, 4 nodes"
    assert other.low < 0.5 < other.high
    assert other.above_whole_high < -0.3


def test_settings_and_several_graphs(graph, small):
    """Several are audited side by side, and called so that they can be told apart."""
    twin = condense(graph, method="clusters", nodes=6, seed=1)
    larger = condense(graph, method="random", nodes=9)
    found = audited([small, twin, larger], graph, runs=1, models=["sgc", "mlp"], noise={"edges": 0, "labels": 0.4})
    assert [one.name for one in found.subjects] == [
        "whole graph",
        "6 random nodes",
        "9 random nodes",
        "clusters, 6 nodes, seed 0",
        "clusters, 6 nodes, seed 1",
        "random, 9 nodes",
    ]
    assert found.noise == Noise(0, 0.1, 0.4)
    assert found.noises("before") == ("features", "labels", "features+labels")
    assert found.noises("test") == ("features",)
    assert found.models == ("sgc", "mlp")
    assert found.recipe == {"epochs": 12}
    assert all(one.n == 1 for one in found.accuracies)


def test_graphs_of_one_method_and_seed_are_told_apart_by_their_digests(graph, small):
    hard = condense(graph, method="clusters", nodes=6, labels="hard")
    names = [one.name for one in audited([small, hard, small], graph, runs=1, noise={"edges": 0}).subjects]
    assert names[2:] == [f"clusters, 6 nodes, {each.sha256[:8]}" for each in (small, hard)]


def test_quick_is_one_draw_and_two_runs(graph, small):
    found = audited(small, graph, seeds=None, runs=None, quick=True, epochs=2)
    assert (found.seeds, found.runs) == (1, 2)
    assert audited(small, graph, seeds=None, runs=1, quick=True, epochs=2).runs == 1


def test_what_is_done_is_not_done_again(tmp_path, graph, small, monkeypatch):
    with LocalEngine(workers=1) as engine:
        first = gcond.audit(small, on=graph, folder=tmp_path, engine=engine, **QUICK)
        assert Audit.load(tmp_path) == first

        def trains(*_, **__):
            raise AssertionError("this is done already")

        monkeypatch.setattr("gcond.jobs.observed_training.fit", trains)
        monkeypatch.setattr("gcond.jobs.runner.condense", trains)
        again = gcond.audit(small, on=graph, folder=tmp_path, engine=engine, **QUICK)
        assert again == first


def test_a_killed_audit_goes_on_to_the_same_end(tmp_path, graph, small, found):
    with LocalEngine(workers=1) as engine:
        gcond.audit(small, on=graph, folder=tmp_path, engine=engine, **QUICK)
        log = tmp_path / "observations.jsonl"
        lines = log.read_text().splitlines(keepends=True)
        log.write_text("".join(lines[: len(lines) // 2]) + lines[-1][:40])
        again = gcond.audit(small, on=graph, folder=tmp_path, engine=engine, **QUICK)
    assert again == found


@pytest.mark.slow
def test_processes_find_the_same(tmp_path, graph, small, found):
    with LocalEngine(workers=2, threads=2) as engine:
        assert gcond.audit(small, on=graph, folder=tmp_path, engine=engine, **QUICK) == found


def test_progress_is_told_to_its_end(graph, small):
    told = []
    audited(small, graph, epochs=2, runs=1, on_progress=lambda *words: told.append(words))
    shares = [done / total for _, done, total, _ in told]
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1)
    assert {detail for *_, detail in told} == {"condensing", "training"}


def test_inductive_and_directed_graphs(make_graph):
    for graph in (make_graph("inductive"), make_graph(directed=True)):
        found = audited(condense(graph, method="clusters", nodes=6), graph, runs=1, epochs=3)
        assert not found.failures
        assert len(found.membership) == 3


def test_in_the_inductive_setting_members_are_asked_about_on_their_own_graph(make_graph):
    graph = make_graph("inductive")
    small = condense(graph, method="random", nodes=6)
    trained = gcond.train(small, on=graph, epochs=5)
    members, others = asked_nodes(graph)
    assert members.equal(graph.train_mask.nonzero().squeeze(1))
    assert others.equal(graph.test_mask.nonzero().squeeze(1))
    got = confidence(trained.model, trained.parameters, graph, members, device="cpu")
    answers = trained.predict(graph, nodes="train")
    sure = as_trained(trained, answers).gather(1, answers.labels[:, None]).log().squeeze(1)
    assert got == pytest.approx(sure, abs=1e-5)


def test_nodes_to_ask_about_are_drawn_where_they_are_many(monkeypatch, make_graph):
    monkeypatch.setattr("gcond.jobs.observed_training.MOST_ASKED", 7)
    graph = make_graph()
    members, others = asked_nodes(graph)
    assert (len(members), len(others)) == (7, 7)
    assert bool(graph.train_mask[members].all())
    assert bool(graph.test_mask[others].all())
    assert asked_nodes(graph)[0].equal(members)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (None, "it does not say how it was made"),
        ({"grown_from": "abc"}, "it was grown from another condensed graph"),
        ({"compaction": {"entries": 3}}, "it was made compact"),
        ({"ended": "its time was up"}, "its learning was ended by a deadline"),
        ({"method": "dream"}, "unknown method 'dream'"),
        ({"settings": {"depth": 3}}, "has no setting 'depth'"),
    ],
)
def test_what_cannot_be_made_again_is_left_out_of_that_alone_and_said(graph, small, changes, reason):
    made = None if changes is None else dataclasses.replace(small.provenance, **changes)
    found = audited(dataclasses.replace(small, provenance=made), graph, runs=1, epochs=2)
    given = found.subjects[-1]
    assert not given.repeated
    assert {one.subject for one in found.accuracies if one.stage == "before"} == {"whole graph", "6 random nodes"}
    assert found.accuracy(given.name, "gcn", "test", "edges") is not None
    assert any("left out of noise before condensing, because" in note and reason in note for note in found.notes)


def test_sizes_without_random_nodes_are_said(graph):
    x = torch.randn(60, graph.num_features)
    many = CondensedGraph(x, torch.arange(60) % 3, torch.empty(2, 0, dtype=torch.long), torch.empty(0))
    found = audited(many, graph, runs=1, epochs=2)
    assert [one.kind for one in found.subjects] == ["whole", "condensed"]
    assert any("60 random nodes are left out: 60 nodes are more than" in note for note in found.notes)


def test_another_source_is_said(graph, small):
    other = random_graph(seed=5)
    found = audited(small, other, runs=1, epochs=2)
    assert any("was not made from 'random-5' as it is here" in note for note in found.notes)


def test_the_making_is_repeated_with_all_its_settings(graph):
    made = condense(graph, method="clusters", nodes=7, seed=4, hops=1)
    again = repetition(made, graph)
    assert (again.method, again.budget.nodes, again.seed) == (Clusters(hops=1), 7, 4)
    assert again.method.condense(graph, again.budget, again.seed).sha256 == made.sha256
    assert repetition(condense(graph, method="random", nodes=6), graph).method == Random()


def test_failures_are_told_and_do_not_take_others_along(graph, small, monkeypatch):
    def stumble(self, task, callbacks=()):
        raise gcond.GcondError("no clusters in noise")

    monkeypatch.setattr(Clusters, "reduce", stumble)
    found = audited(small, graph, runs=1, epochs=2, noise={"edges": 0, "features": 0})
    assert [failure.error for failure in found.failures] == ["no clusters in noise"]
    assert {one.subject for one in found.accuracies if one.stage == "before"} == {"whole graph", "6 random nodes"}
    assert found.accuracy("clusters, 6 nodes", "gcn") is not None


def test_where_nothing_can_be_trained_it_is_an_error(graph, small):
    with pytest.raises(gcond.GcondError, match=r"nothing could be trained, .* diverged"):
        audited(small, graph, runs=1, lr=1e30, epochs=9, noise={"edges": 0, "features": 0, "labels": 0})


@pytest.mark.parametrize(
    ("given", "options", "message"),
    [
        ([], {}, "an audit needs a condensed graph"),
        (3, {}, "a int cannot be audited"),
        ([None], {}, "a NoneType cannot be audited"),
        (None, {"seeds": 0}, "seeds=0 is too small"),
        (None, {"runs": 1.5}, "not a whole number"),
        (None, {"noise": {"edge": 0.1}}, "did you mean 'edges'"),
        (None, {"noise": {"edges": 2}}, "must be at least 0 and below 1"),
        (None, {"noise": {"edges": "many"}}, "edges='many' is not usable"),
        (None, {"models": "gnc"}, "unknown model 'gnc'"),
        (None, {"models": [GCN(), GCN(hidden=8)]}, "'gcn' is given with different settings"),
        (None, {"epoch": 3}, "did you mean 'epochs'"),
        (None, {"threads": 2}, "the engine has its own threads"),
    ],
)
def test_refusals(graph, small, given, options, message):
    with pytest.raises(gcond.GcondError, match=message):
        audited(small if given is None else given, graph, **options)


def test_graphs_on_disk_are_refused_in_a_sentence(tmp_path, graph, small, monkeypatch):
    from gcond.graph.stored_graph import StoredGraph

    stored = object.__new__(StoredGraph)
    object.__setattr__(stored, "name", "large")
    monkeypatch.setattr(module, "source_of", lambda *_: stored)
    with pytest.raises(gcond.GcondError, match="'large' is streamed from its store: use more memory"):
        audited(small, graph)
    with pytest.raises(gcond.GcondError, match="'large' in memory"):
        perturbed(stored, Noise(), 0)
