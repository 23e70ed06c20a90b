"""Figures: what they say is what the data says, any text can be drawn, and the same data gives the same bytes."""

from __future__ import annotations

import dataclasses
import re
import sys
import xml.etree.ElementTree as ET
from importlib.resources import files

import hypothesis
import hypothesis.strategies as st
import matplotlib as mpl
import networkx as nx
import numpy as np
import pytest
import torch
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.text import Text

from gcond.condensed.condensed_graph import CondensedGraph
from gcond.condensed.graph_picture import joined_pairs
from gcond.condensed.provenance import Provenance
from gcond.errors import GcondError
from gcond.reports.figures import save_figure, style, svg_text
from gcond.reports.figures.accuracy_by_budget import budget_figure
from gcond.reports.figures.accuracy_by_threshold import threshold_figure
from gcond.reports.figures.architecture_agreement import architectures_figure
from gcond.reports.figures.class_balance import balance_figure
from gcond.reports.figures.feature_map import MOST_SOURCE_NODES, embedding_figure, sample_nodes, tsne
from gcond.reports.figures.graph_drawing import graph_figure, layout, pack
from gcond.reports.figures.learning_curves import curves_figure, kept_probe
from gcond.reports.figures.tuning_progress import tuning_figure
from gcond.results import Architecture, Comparison, Line, Search, SourceSummary, ThresholdPoint, Winner
from gcond.results.search import CondensedSummary
from reports.sample_runs import tuning

NASTY = ("$x_1$ & <b>", "_hidden_", "a$", "100% {}", "\x00\x1f tab\tnew\nline", "''\"", "")
HISTORY = {"loss": [9.0, 1.0, 0.2], "probe": [0.5, 0.7, 0.7, 0.6], "probe_epoch": [0.0, 1.0, 2.0, 3.0]}


def condensed(n=20, classes=3, edges=30, *, names=(), name="cora", history=None, seed=0, directed=False):
    stream = torch.Generator().manual_seed(seed)
    y = torch.arange(n) % classes
    upper = torch.triu_indices(n, n, 1)
    chosen = upper[:, torch.randperm(upper.shape[1], generator=stream)[:edges]]
    weight = torch.rand(chosen.shape[1], generator=stream) * 0.95 + 0.05
    made = Provenance(
        method="gcond",
        settings={"delta": 0.05},
        seed=0,
        budget={"nodes": n, "ratio": 0.01},
        setting="transductive",
        source={"name": name, "sha256": "0", "nodes": 1000},
        transform={},
        num_classes=classes,
        class_names=tuple(names),
        directed=directed,
        history=history or {},
    )
    x = torch.randn(n, 6, generator=stream)
    return CondensedGraph(x, y, torch.cat([chosen, chosen.flip(0)], 1), torch.cat([weight, weight]), provenance=made)


def words(figure):
    return [text.get_text().replace("\\$", "$") for text in figure.findobj(Text) if text.get_text()]


def line(method, nodes, mean, *, model="gcn", kind="learned", std=0.01, n=20):
    return Line(method, kind, model, nodes, nodes / 2708, edges=7.0, bytes=100.0, mean=mean, std=std, n=n)


def comparison(name="cora", method="gcond", models=("gcn",)):
    lines = [line("whole", 2708, 0.8, kind="whole", model=model) for model in models]
    lines += [line(method, nodes, 0.7 + nodes / 1000, model=model) for nodes in (70, 35) for model in models]
    return Comparison(SourceSummary(name), tuple(lines))


def search(name="cora", model="appnp", whole=(0.75, 0.79, 0.77)):
    sides = zip((16, 32, 64), whole, strict=True)
    tried = tuple(Architecture({"hidden": hidden}, 0.7 + hidden / 1000, up, 1.0, 2.0) for hidden, up in sides)
    winner = Winner({"hidden": 64}, (0.808, 0.81, 0.812))
    return Search(
        source=SourceSummary(name),
        condensed=CondensedSummary(nodes=70, edges=0, bytes=100),
        model=model,
        grid={"hidden": [16, 32, 64]},
        recipe={},
        condensed_epochs=300,
        seed=0,
        architectures=tried,
        winners={"condensed": winner, "whole": winner},
    )


POINTS = [
    ThresholdPoint(0.1, 0.01, 0.79, 0.02, 3),
    ThresholdPoint(0.05, 0.2, 0.8, 0.01, 3),
    ThresholdPoint(0.8, 0, 0.7, 0, 3),
]


def every_figure(name="cora", names=(), method="gcond"):
    small = condensed(names=names, classes=len(names) or 3, name=name, history=HISTORY)
    return {
        "graph": graph_figure(small),
        "curves": curves_figure(small),
        "balance": balance_figure(small, [10] * small.num_classes),
        "threshold": threshold_figure(POINTS, small=small),
        "budget": budget_figure(comparison(name, method)),
        "architectures": architectures_figure(search(name, method)),
        "tuning": tuning_figure(tuning(source=SourceSummary(name))),
    }


@pytest.mark.slow
def test_nasty_names_make_well_formed_pictures_that_show_them(tmp_path):
    for kind, figure in every_figure(name="<&$a_b$>", names=NASTY, method="_m$x$<").items():
        root = ET.fromstring(svg_text(figure))
        title = root.find("{http://www.w3.org/2000/svg}title").text
        assert "<&$a_b$>" in title, kind
        assert any("<&$a_b$>" in word for word in words(figure)), kind
        save_figure(figure, tmp_path / f"{kind}.png")
    shown = words(balance_figure(condensed(classes=7, names=NASTY)))
    assert {"$x_1$ & <b>", "_hidden_", "a$", r"\x00\x1f tab\x09new line", "class 6"} <= set(shown)


@hypothesis.given(st.text(max_size=30))
@hypothesis.settings(max_examples=60)
def test_cleaned_text_can_stand_in_xml(text):
    cleaned = style.clean(text)
    root = ET.Element("a")
    root.text = cleaned
    assert ET.fromstring(ET.tostring(root)).text == (cleaned or None)


@pytest.mark.parametrize("text", ["a $x$ b", "$", "$$", r"\$1", r"a\$b$c$d"])
def test_dollars_are_drawn_as_dollars(text):
    drawn, is_math = Text(text=style.plain(text))._preprocess_math(style.plain(text))
    assert (drawn, bool(is_math)) == (text, False)


@pytest.mark.slow
def test_the_same_data_gives_the_same_bytes(tmp_path):
    for suffix in ("png", "svg"):
        found = []
        for _ in range(2):
            for kind, figure in every_figure().items():
                save_figure(figure, tmp_path / f"{kind}.{suffix}")
            found.append({path.name: path.read_bytes() for path in tmp_path.glob(f"*.{suffix}")})
        assert found[0] == found[1]
        assert len(found[0]) == 7


def test_neither_reads_nor_changes_a_users_settings():
    expected = svg_text(graph_figure(condensed()))
    with mpl.rc_context({"font.size": 30, "figure.facecolor": "black", "svg.fonttype": "none"}):
        before = dict(mpl.rcParams)
        assert svg_text(graph_figure(condensed())) == expected
        assert dict(mpl.rcParams) == before
    assert "matplotlib.pyplot" not in sys.modules or not sys.modules["matplotlib.pyplot"].get_fignums()


def test_two_inline_pictures_do_not_disturb_each_other():
    first, second = (
        svg_text(figure) for figure in (curves_figure(condensed(history=HISTORY)), balance_figure(condensed()))
    )
    ids = [set(re.findall(r'\bid="([^"]+)"', text)) for text in (first, second)]
    assert not ids[0] & ids[1]
    for text, own in zip((first, second), ids, strict=True):
        assert not text.startswith("<?xml")
        used = set(re.findall(r'href="#([^"]+)"', text)) | set(re.findall(r"url\(#([^)]+)\)", text))
        assert used
        assert used <= own
        root = ET.fromstring(text)
        assert root.get("role") == "img"
        assert root.get("aria-labelledby") in own
        for sheet in root.iter("{http://www.w3.org/2000/svg}style"):
            assert sheet.text.startswith(f"#{root.get('id')} ")
        assert "metadata" not in text


def test_formats_by_suffix(tmp_path):
    figure = balance_figure(condensed())
    save_figure(figure, tmp_path / "a.PNG")
    save_figure(figure, tmp_path / "a.svg")
    assert (tmp_path / "a.PNG").read_bytes().startswith(b"\x89PNG")
    assert ET.parse(tmp_path / "a.svg").getroot().tag.endswith("svg")
    with pytest.raises(GcondError, match=r"ends in .png or .svg"):
        save_figure(figure, tmp_path / "a.pdf")
    with pytest.raises(GcondError, match="does not exist"):
        save_figure(figure, tmp_path / "nowhere" / "a.png")


def test_edges_are_those_of_the_graph():
    small = condensed()
    pairs, weight = joined_pairs(small)
    assert weight.tolist() == sorted(weight.tolist(), reverse=True)
    oracle = nx.Graph()
    for (source, target), value in zip(small.edge_index.T.tolist(), small.edge_weight.tolist(), strict=True):
        oracle.add_edge(source, target, weight=value)
    assert {tuple(pair): value for pair, value in zip(pairs.tolist(), weight, strict=True)} == {
        tuple(sorted(pair)): oracle.edges[pair]["weight"] for pair in oracle.edges
    }


def test_of_two_directions_the_heavier_is_drawn():
    small = dataclasses.replace(
        condensed(n=3, edges=0),
        edge_index=torch.tensor([[0, 1, 1], [1, 0, 2]]),
        edge_weight=torch.tensor([0.2, 0.7, 0.1]),
    )
    pairs, weight = joined_pairs(small)
    assert pairs.tolist() == [[0, 1], [1, 2]]
    assert weight.tolist() == pytest.approx([0.7, 0.1])


def test_strong_edges_are_black_and_light_ones_grey():
    small = condensed()
    figure = graph_figure(small)
    [lines] = [drawn for drawn in figure.axes[0].collections if isinstance(drawn, LineCollection)]
    colours = lines.get_colors()[:, :3]
    strong = int((small.edge_weight > 0.5).sum()) // 2
    assert int((colours == 0).all(1).sum()) == strong
    assert 0 < strong < 30
    light = colours[(colours > 0).all(1)]
    assert bool((np.diff(light[:, 0]) <= 0).all())  # drawn from light to heavy, darker all the way
    assert f"edge heavier than 0.5 ({strong})" in words(figure)
    assert f"edge of weight 0.05 to 0.5, darker if heavier ({30 - strong})" in words(figure)


def pair(weights, **changes):
    """Nodes 0, 1, 2, … in a row, joined by edges of ``weights``."""
    ends = torch.stack([torch.arange(len(weights)), torch.arange(len(weights)) + 1])
    values = torch.tensor(weights)
    row = condensed(n=len(weights) + 1, classes=2, edges=0, **changes)
    return dataclasses.replace(
        row, edge_index=torch.cat([ends, ends.flip(0)], 1), edge_weight=torch.cat([values, values])
    )


def test_an_edge_of_one_half_is_not_yet_strong():
    assert {"edge heavier than 0.5 (1)", "edge of weight 0.05 to 0.5, darker if heavier (2)"} <= set(
        words(graph_figure(pair([0.25, 0.5, 0.75])))
    )


def test_weights_above_1_are_drawn_by_their_share_of_the_heaviest():
    figure = graph_figure(dataclasses.replace(pair([1.0, 2.0, 5.0, 8.0]), provenance=None))
    [lines] = [drawn for drawn in figure.axes[0].collections if isinstance(drawn, LineCollection)]
    assert int((lines.get_colors()[:, :3] == 0).all(1).sum()) == 2
    assert {"edge heavier than 4 (2)", "edge of weight 0 to 4, darker if heavier (2)"} <= set(words(figure))


def test_shrunk_weights_start_from_0():
    small = pair([0.02, 0.3])
    made = dataclasses.replace(small.provenance, settings={"delta": 0.05, "sparsify": "shrink"})
    shown = words(graph_figure(dataclasses.replace(small, provenance=made)))
    assert "edge of weight 0 to 0.5, darker if heavier (2)" in shown


def test_edges_with_directions_are_counted_and_pairs_are_drawn():
    small = dataclasses.replace(
        condensed(n=4, edges=0, directed=True),
        edge_index=torch.tensor([[0, 1, 1], [1, 0, 2]]),
        edge_weight=torch.tensor([0.2, 0.7, 0.1]),
    )
    shown = words(graph_figure(small))
    assert "Cora condensed to 4 nodes by gcond: 3 edges" in shown
    assert {"joined pair heavier than 0.5 (1)", "joined pair of weight 0.05 to 0.5, darker if heavier (1)"} <= set(
        shown
    )


def test_every_node_is_drawn_in_its_class():
    small = condensed(n=50, classes=9, edges=60)
    nodes = [drawn for drawn in graph_figure(small).axes[0].collections if isinstance(drawn, PathCollection)]
    assert [len(drawn.get_offsets()) for drawn in nodes] == torch.bincount(small.y).tolist()
    looks = {(tuple(drawn.get_facecolor()[0]), len(drawn.get_paths()[0].vertices)) for drawn in nodes}
    assert len(looks) == 9


@pytest.mark.parametrize(
    ("n", "classes", "edges"), [(30, 3, 40), (1000, 40, 3000), (400, 2, 2000), (5, 1, 4), (40, 40, 0)]
)
def test_no_two_nodes_overlap(n, classes, edges):
    position = np.concatenate(
        [
            drawn.get_offsets()
            for drawn in graph_figure(condensed(n, classes, edges)).axes[0].collections
            if isinstance(drawn, PathCollection)
        ]
    )
    assert len(position) == n
    gaps = np.sqrt(((position[:, None] - position[None]) ** 2).sum(2)) + np.eye(n) * 9
    assert gaps.min() > 0.75  # a node's diameter, in units of the layout


def test_nodes_move_towards_their_neighbours():
    labels = np.repeat(np.arange(2), 20)
    centres = np.array([[0.0, 0.0], [10.0, 0.0]])
    ends = np.stack([np.arange(20), np.arange(20) + 20], 1)
    weight = np.ones(20)

    def length(place):
        return np.linalg.norm(place[ends[:, 0]] - place[ends[:, 1]], axis=1).sum()

    still = layout(labels, np.empty((0, 2), dtype=np.int64), np.empty(0), centres)
    moved = layout(labels, ends, weight, centres)
    assert length(moved) < length(still)
    for label in range(2):  # the places stay, only who has which changes
        assert sorted(map(tuple, moved[labels == label])) == sorted(map(tuple, still[labels == label]))


@hypothesis.given(st.lists(st.floats(0.5, 12), min_size=2, max_size=60))
@hypothesis.settings(max_examples=25)
def test_packed_discs_do_not_overlap(radii):
    radii = np.array(radii)
    centres = pack(radii)
    gaps = np.sqrt(((centres[:, None] - centres[None]) ** 2).sum(2))
    inside = gaps - (radii[:, None] + radii[None])
    assert inside[np.triu_indices(len(radii), 1)].min() > -1e-6


@pytest.mark.slow
def test_many_edges_do_not_make_an_svg_that_no_one_can_open():
    text = svg_text(graph_figure(condensed(n=200, classes=4, edges=15_000)))
    assert "<image" in text
    assert len(text) < 2_000_000


def test_a_graph_without_edges_says_so():
    shown = " ".join(words(graph_figure(condensed(edges=0))))
    assert "no edges" in shown
    assert "A' = I" in shown


def test_a_graph_of_unknown_origin():
    small = dataclasses.replace(condensed(), provenance=None)
    assert "Condensed graph of 20 nodes: 30 edges" in words(graph_figure(small))
    with pytest.raises(GcondError, match="no loss curve"):
        curves_figure(small)


def test_a_threshold_drops_edges_from_the_picture():
    small = condensed()
    left = int((small.edge_weight > 0.4).sum()) // 2
    assert f"Cora condensed to 20 nodes by gcond: {left} edges" in words(graph_figure(small, delta=0.4))
    with pytest.raises(GcondError, match=r"below 0\.05"):
        graph_figure(small, delta=0.01)


def test_curves_are_the_history():
    figure = curves_figure(condensed(history=HISTORY))
    loss, probe = figure.axes
    assert loss.lines[0].get_xydata().tolist() == [[1, 9.0], [2, 1.0], [3, 0.2]]
    np.testing.assert_allclose(probe.lines[0].get_xydata(), [[0, 50], [1, 70], [2, 70], [3, 60]])
    assert "kept: epoch 2, 70.0 %" in words(figure)
    assert len(curves_figure(condensed(history={"loss": [0.0]})).axes) == 1


def test_what_was_kept_is_the_best_probe_and_the_start_has_to_be_beaten():
    assert kept_probe({"probe": [0.9, 0.5, 0.5], "probe_epoch": [0, 5, 10]}) == (0, 0.9)
    assert kept_probe({"probe": [0.4, 0.5, 0.5], "probe_epoch": [0, 5, 10]}) == (10, 0.5)
    assert kept_probe({"probe": [0.5, 0.5], "probe_epoch": [0, 5]}) == (0, 0.5)
    assert kept_probe({"probe": [0.9], "probe_epoch": [0]}) == (0, 0.9)
    assert kept_probe({}) is None
    assert kept_probe({"probe": [0.4, 0.5], "probe_epoch": [0, 5]}, kept=0) == (0, 0.4)


def test_a_selected_graph_has_no_curves():
    with pytest.raises(GcondError, match="no loss curve"):
        curves_figure(condensed())


def test_balance_is_in_shares_with_the_largest_class_on_top():
    small = condensed(n=20, classes=3)
    figure = balance_figure(small, [10, 30, 60])
    ours, theirs = figure.axes[0].containers
    np.testing.assert_allclose([bar.get_width() for bar in theirs], [60, 30, 10])
    np.testing.assert_allclose([bar.get_width() for bar in ours], [30, 35, 35])
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["class 2", "class 1", "class 0"]
    with pytest.raises(GcondError, match="2 classes and the condensed graph 3"):
        balance_figure(small, [1, 2])


def test_balance_of_very_many_classes_stays_a_page():
    figure = balance_figure(condensed(n=300, classes=300, edges=0))
    assert figure.get_figheight() < 30
    assert any("240 smallest classes are left out" in word for word in words(figure))


def test_thresholds_in_order():
    above, below = threshold_figure(POINTS).axes
    np.testing.assert_allclose(above.lines[0].get_ydata().astype(float), [80, 79, 70])
    np.testing.assert_allclose([bar.get_height() for bar in below.patches], [20, 1, 0])
    assert [label.get_text() for label in below.get_xticklabels()] == ["0.05", "0.1", "0.8"]
    assert "0.05\n(as saved)" in words(threshold_figure(POINTS, small=condensed()))
    with pytest.raises(GcondError, match="no threshold"):
        threshold_figure([])


def test_budgets_in_order_with_the_whole_graph():
    figure = budget_figure(comparison())
    [axes] = figure.axes
    drawn = [entry for entry in axes.lines if entry.get_marker() == "o"]
    np.testing.assert_allclose(drawn[0].get_ydata().astype(float), [73.5, 77])
    assert {"whole graph 80.0", "gcond 77.0"} <= set(words(figure))
    assert "35\n(1.3 %)" in words(figure)
    assert len(budget_figure(comparison(models=("gcn", "sgc", "mlp"))).axes) == 4  # the fourth is hidden
    with pytest.raises(GcondError, match="no condensed graph"):
        budget_figure(Comparison(SourceSummary("x"), (line("whole", 10, 0.5, kind="whole"),)))


def bars_of(figure):
    """The error bars that can be seen."""
    [bars] = [drawn for drawn in figure.axes[0].collections if isinstance(drawn, LineCollection)]
    return [path for path in bars.get_paths() if np.isfinite(path.vertices).all()]


def test_a_single_training_has_no_deviation_to_draw():
    single = tuple(dataclasses.replace(each, n=1, std=0.0) for each in comparison().lines)
    figure = budget_figure(dataclasses.replace(comparison(), lines=single))
    assert not any("standard deviation" in word for word in words(figure))
    assert not figure.axes[0].patches  # the band of the whole graph
    assert bars_of(figure) == []
    assert len(bars_of(budget_figure(comparison()))) == 2
    assert budget_figure(comparison()).axes[0].patches


def test_labels_at_the_ends_of_lines_keep_apart_and_in_order():
    placed = style._apart([1.0, 1.0, 1.1, 5.0], 1.0)
    assert placed == sorted(placed)
    assert min(np.diff(placed)) >= 1 - 1e-9
    assert placed[-1] == 5.0


def test_architectures():
    figure = architectures_figure(search())
    [dots] = figure.axes[0].collections
    np.testing.assert_allclose(np.asarray(dots.get_offsets())[:, 0], [71.6, 73.2, 76.4])
    assert f"Pearson correlation {search().pearson:.2f} · Spearman correlation 0.50" in words(figure)
    assert not any("correlation" in word for word in words(architectures_figure(search(whole=(0.7, 0.7, 0.7)))))
    assert any("test accuracy 81.0 ± 0.2 %" in word for word in words(figure))
    with pytest.raises(GcondError, match="nothing to draw"):
        architectures_figure(dataclasses.replace(search(), architectures=()))


def test_tuning():
    figure = tuning_figure(tuning())
    lines = {line.get_label(): line for line in figure.axes[0].lines}
    np.testing.assert_allclose(np.asarray(lines["given up on the way"].get_xydata()), [[1, 50]])
    np.testing.assert_allclose(np.asarray(lines["fully trained"].get_xydata()), [[0, 80], [2, 83], [3, 80]])
    np.testing.assert_allclose(np.asarray(lines["usual configuration"].get_xydata()), [[0, 80]])
    np.testing.assert_allclose(np.asarray(lines["best so far"].get_ydata()), [80, 83, 83, 83])
    assert "Toy: 4 configurations of GCN on 8 condensed nodes" in words(figure)
    assert "5.00 s of CPU time" in words(figure)
    with pytest.raises(GcondError, match="nothing to draw"):
        tuning_figure(tuning(trials=()))


def test_embedding_shows_both_graphs(make_graph):
    source = make_graph()
    small = dataclasses.replace(condensed(n=12, edges=0), x=torch.randn(12, source.num_features))
    figure = embedding_figure(small, source)
    counts = [len(drawn.get_offsets()) for drawn in figure.axes[0].collections]
    labelled = source.y[source.y >= 0]
    assert counts == [*torch.bincount(labelled).tolist(), 4, 4, 4]
    assert {"condensed node (12)", f"source node ({len(labelled)})"} <= set(words(figure))
    assert svg_text(embedding_figure(small, source)) == svg_text(figure)


def test_embedding_tells_clusters_apart():
    centres = torch.repeat_interleave(torch.eye(3) * 20, 15, dim=0)
    place = tsne(centres + torch.randn(45, 3, generator=torch.Generator().manual_seed(0)), seed=0)
    middle = place.reshape(3, 15, 2).mean(1)
    nearest = ((place[:, None] - middle[None]) ** 2).sum(2).argmin(1)
    assert nearest.tolist() == [0] * 15 + [1] * 15 + [2] * 15


def test_embedding_refuses_what_has_nothing_to_show(make_graph):
    with pytest.raises(GcondError, match="3 nodes are too few"):
        embedding_figure(condensed(n=3, edges=0))
    with pytest.raises(GcondError, match="same features"):
        embedding_figure(dataclasses.replace(condensed(), x=torch.ones(20, 2)))
    with pytest.raises(GcondError, match="6 features and 'random-0' has 12"):
        embedding_figure(condensed(), make_graph())


def test_a_large_source_is_sampled(make_graph):
    source = make_graph(sizes=(900, 700), features=2)
    drawn = sample_nodes(source, 0)
    assert len(drawn) == MOST_SOURCE_NODES == len(set(drawn.tolist()))
    assert bool((source.y[drawn] >= 0).all())
    assert torch.equal(drawn, sample_nodes(source, 0))
    assert not torch.equal(drawn, sample_nodes(source, 1))


@pytest.mark.parametrize("package", ["matplotlib", "openTSNE"])
def test_a_missing_extra_is_one_sentence(monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(GcondError, match=rf"figures need {package}.*pip install 'gcond\[report\]'"):
        embedding_figure(condensed())


def test_first_56_classes_look_different():
    assert len({style.look(label) for label in range(56)}) == 56


def test_the_page_has_the_same_colours_and_as_many_shapes():
    script = files("gcond.reports").joinpath("templates", "page.js").read_text("utf-8")
    colours, shapes = (
        re.findall(r'"([^"]+)"', re.search(rf"const {name} = \[(.*?)\];", script)[1]) for name in ("COLOURS", "SHAPES")
    )
    assert [colour.upper() for colour in colours] == list(style.COLOURS)
    assert len(shapes) == len(set(shapes)) == len(style.MARKERS)
    assert all(f'shape === "{shape}"' in script for shape in shapes[1:])  # the first is the circle
