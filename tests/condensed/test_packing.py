from __future__ import annotations

import dataclasses

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from condensed.test_condensed_graph import SCORE, condensed, small
from gcond.condensed import Compaction, CondensedGraph
from gcond.condensed.compaction import LARGEST_STEP, SMALLEST_STEP, relative_step
from gcond.errors import GcondError
from gcond.runtime.tensor_file import read_tensors, write_tensors
from reference.damage import damaged_headers, damaged_tensors, sentence

ENTRIES = st.none() | st.integers(1, 6)
COMPACTIONS = st.builds(Compaction, ENTRIES, st.sampled_from([4, 8, 16, 32]))


def large(bits=4, signed=True, entries=6, step=None):
    """Twenty nodes of 100 features with soft labels, a cycle, and every optional tensor."""
    stream = torch.Generator().manual_seed(1)
    x = torch.randn(20, 100, generator=stream)
    order = torch.arange(20)
    graph = CondensedGraph(
        x=x if signed else x.abs(),
        y=torch.randn(20, 3, generator=stream).softmax(1),
        edge_index=torch.stack([order, order.roll(1)]),
        edge_weight=torch.rand(20, generator=stream),
        source_index=torch.arange(300, 320),
        cluster=torch.randint(-1, 20, (400,), generator=stream),
    )
    return graph.compacted(Compaction(entries, 8 if step else bits, step))


@given(graph=condensed(), entries=ENTRIES, share=st.sampled_from([0.001, 0.3, 2.0, 1e9]))
def test_so_it_does_in_steps(graph, entries, share, tmp_path_factory):
    step = relative_step(graph.x, share)
    assume(SMALLEST_STEP <= step <= LARGEST_STEP)
    back_from_file(graph, Compaction(entries, step=step), tmp_path_factory)


@given(graph=condensed(), compaction=COMPACTIONS)
def test_save_then_load_gives_it_back_bit_for_bit(graph, compaction, tmp_path_factory):
    back_from_file(graph, compaction, tmp_path_factory)


def back_from_file(graph, compaction, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "compact.safetensors"
    compact = graph.compacted(compaction)
    compact.save(path)
    back = CondensedGraph.load(path)
    assert back.sha256 == compact.sha256
    assert back.compaction == compaction
    assert back.provenance == compact.provenance
    assert back.nbytes == compact.nbytes
    for name, tensor in compact.tensors().items():
        assert tensor.dtype == back.tensors()[name].dtype


@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize("bits", [4, 8, 16, 32])
@pytest.mark.parametrize("entries", [1, 6, 80, None])
def test_both_ways_to_say_where_entries_are(tmp_path, bits, signed, entries):
    graph = large(bits, signed, entries)
    graph.save(tmp_path / "g")
    assert ("x.mask" in graph.packed) == (entries in (80, None))  # a bit for each place is less there
    assert ("x.high" in graph.packed) == ("x.low" in graph.packed) != ("x.mask" in graph.packed)
    assert CondensedGraph.load(tmp_path / "g").sha256 == graph.sha256


def test_far_apart_entries(tmp_path):
    """One entry or a few among many zeros, at both ends, side by side and far apart."""
    for places in ([], [0], [140001], [0, 255, 511, 768], [0, 1, 2, 140000], [10, 65545, 65546, 131083]):
        x = torch.zeros(2, 70001)
        x.view(-1)[torch.tensor(places, dtype=torch.long)] = torch.arange(1.0, 1 + len(places))
        none = {"edge_index": torch.empty(2, 0, dtype=torch.long), "edge_weight": torch.empty(0)}
        graph = CondensedGraph(x=x, y=torch.tensor([0, 1]), **none).compacted(Compaction(None, 32))
        graph.save(tmp_path / "g")
        assert torch.equal(CondensedGraph.load(tmp_path / "g").x, x)


def test_bytes_are_those_of_the_file():
    plain, graph = small(), large(4, signed=False, entries=6)
    assert plain.nbytes == sum(t.nbytes for t in (plain.x, plain.y, plain.edge_index, plain.edge_weight))
    # Of 120 entries among 2,000 places 4 bits each are written out, and at most 120 + 2,000 / 16 say the rest.
    assert graph.packed["x.low"].nbytes == 60
    places = 60 + graph.packed["x.high"].nbytes
    assert 29 <= places - 60 <= 31
    features, labels, edges = places + 60 + 20 * 4, 20 * 3, 2 * 20 + 2 * 20 + 4
    assert graph.nbytes == features + labels + edges
    assert graph.statistics.bytes == graph.nbytes
    assert graph.packed["cluster"].dtype == torch.int8
    assert graph.packed["source_index"].dtype == torch.uint16


def test_a_compact_graph_is_used_like_any_other():
    graph = large()
    assert graph.x.dtype == graph.to_pyg().x.dtype == torch.float32
    assert graph.x.shape == (20, 100)
    assert torch.equal(graph.to_pyg().x, graph.x)
    torch.testing.assert_close(graph.y.sum(1), torch.ones(20))
    assert graph.view().inputs.num_features == 100


def test_scores_are_of_the_graph_before():
    made = small().compacted(Compaction(1, 8))
    assert made.provenance.scores == ()
    again = made.with_scores([SCORE])
    assert again.compaction == made.compaction
    assert again.provenance.scores == (SCORE,)


def test_numbers_that_are_not_compact():
    graph = large()
    for changes in (
        {"x": graph.x * 1.001 + 0.001},
        {"y": graph.y.roll(1, 0) * 0.9 + 0.1 / 3},
        {"edge_weight": torch.rand(20)},
    ):
        with pytest.raises(GcondError, match=r"its numbers are not compact \(6 entries a row, 4 bits each\)"):
            dataclasses.replace(graph, **changes)
    with pytest.raises(GcondError, match="its numbers are not compact"):
        CondensedGraph(**{**small().__dict__, "compaction": Compaction(1, 32)})


def damage(tmp_path, graph, tensors=None, **form):
    """``graph`` in a file with some of its tensors or its form replaced; ``None`` removes a tensor."""
    path = tmp_path / "damaged.safetensors"
    graph.save(path)
    kept, header = read_tensors(path)
    kept = {key: value for key, value in ({**kept, **(tensors or {})}).items() if value is not None}
    write_tensors(path, kept, {**header, "compaction": {**header["compaction"], **form}})
    return path


def changed(tensor, place, value):
    tensor = tensor.clone()
    tensor[place] = value
    return tensor


U8 = torch.uint8


@pytest.mark.parametrize(
    ("bits", "change", "message"),
    [
        (4, lambda p: {"x.values": None}, "lacks the tensor 'x.values': it was not written whole"),
        (4, lambda p: {"x.high": None}, "not one way to say where entries are"),
        (4, lambda p: {"x.low": None}, "not one way to say where entries are"),
        (4, lambda p: {"x.mask": torch.zeros(250, dtype=U8)}, "not one way to say where entries are"),
        (4, lambda p: {"x.high": None, "x.low": None, "x.mask": torch.zeros(9, dtype=U8)}, "x.mask is 9 bytes, and mu"),
        (4, lambda p: {"x.scale": None}, "lacks the tensor 'x.scale'"),
        (4, lambda p: {"y": None}, "lacks the tensor 'y'"),
        (4, lambda p: {"edge_index": None}, "lacks the tensor 'edge_index'"),
        (4, lambda p: {"edge_weight": None}, "lacks the tensor 'edge_weight'"),
        (4, lambda p: {"edge_weight.scale": None}, "lacks the tensor 'edge_weight.scale'"),
        (4, lambda p: {"x": torch.ones(20, 100)}, "has features twice"),
        (4, lambda p: {"surprise": torch.ones(1)}, "has a tensor 'surprise' that this gcond does not know"),
        (32, lambda p: {"x.scale": torch.ones(20)}, "tensor 'x.scale' that is not of its form"),
        (32, lambda p: {"edge_weight.scale": torch.ones(1)}, "has a tensor 'edge_weight.scale' that this gcond does"),
        (4, lambda p: {"x.high": p["x.high"][:-1]}, "x.values has 60 numbers|x.low has 60 bytes"),
        (4, lambda p: {"x.high": p["x.high"].flip(0)}, "not in order, or not in|is not what gcond writes"),
        (4, lambda p: {"x.high": torch.cat([torch.zeros(9, dtype=U8), p["x.high"]])}, "not in 20 × 100"),
        (4, lambda p: {"x.high": torch.cat([p["x.high"], torch.zeros(1, dtype=U8)])}, "'x.high' is not what gcond"),
        (4, lambda p: {"x.high": torch.full((300,), 255, dtype=U8)}, "x.low has 60 bytes, which are not those of 2,40"),
        (4, lambda p: {"x.low": p["x.low"][:-1]}, "x.low has 59 bytes, which are not those of 120 of 2,000 places"),
        (4, lambda p: {"x.low": p["x.low"].float()}, r"x.low is torch.float32 \[60\], and must be uint8"),
        (4, lambda p: {"x.high": p["x.high"][:, None]}, r"x.high is torch.uint8 \[.., 1\], and must be uint8"),
        (4, lambda p: {"x.values": p["x.values"][:-1]}, "x.values has 59 numbers, which are not those of 120 entries"),
        (4, lambda p: {"x.values": torch.full((60,), 0x88, dtype=U8)}, "'x.* is not what gcond writes"),
        (4, lambda p: {"x.values": p["x.values"].half()}, "x.values is torch.float16"),
        (16, lambda p: {"x.values": changed(p["x.values"], 3, torch.nan)}, "x.values has numbers that are not finite"),
        (32, lambda p: {"x.values": changed(p["x.values"], 3, torch.inf)}, "x.values has numbers that are not finite"),
        (32, lambda p: {"x.values": changed(p["x.values"], 3, -0.0)}, "'x.*' is not what gcond writes"),
        (16, lambda p: {"x.values": changed(p["x.values"], 3, 2.0)}, "is not what gcond writes"),
        (8, lambda p: {"x.scale": changed(p["x.scale"], 3, torch.nan)}, "x.scale has numbers that are not finite"),
        (8, lambda p: {"x.scale": changed(p["x.scale"], 3, -1.0)}, "is not what gcond writes"),
        (8, lambda p: {"x.scale": changed(p["x.scale"], 3, 0.0)}, "is not what gcond writes"),
        (8, lambda p: {"x.scale": p["x.scale"][:-1]}, r"x.scale is torch.float32 \[19\], and must be float32 \[20\]"),
        (8, lambda p: {"y": changed(p["y"], (0, 0), 0)}, "its numbers are not compact|shares"),
        (8, lambda p: {"y": p["y"].float()}, "y is torch.float32"),
        (8, lambda p: {"y": p["y"][:0]}, r"y is torch.uint8 \[0, 3\]"),
        (8, lambda p: {"edge_index": changed(p["edge_index"], (0, 0), 77)}, "an edge names node 77"),
        (8, lambda p: {"edge_index": p["edge_index"].long()}, "'edge_index' is not what gcond writes"),
        (
            8,
            lambda p: {"edge_weight": p["edge_weight"].float()},
            r"edge_weight is torch.float32 \[20\], and must be fl",
        ),
        (8, lambda p: {"edge_weight": changed(p["edge_weight"], 0, torch.nan)}, "edge_weight has numbers that are not"),
        (8, lambda p: {"edge_weight": p["edge_weight"][:-1]}, "edge_weight"),
        (8, lambda p: {"cluster": p["cluster"].float()}, "cluster is torch.float32"),
    ],
)
def test_damaged_tensors_are_refused(tmp_path, bits, change, message):
    graph = large(bits)
    path = damage(tmp_path, graph, change(graph.packed))
    with pytest.raises(GcondError, match=message):
        CondensedGraph.load(path)


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ({"version": 4}, "its features are in form 4, and this gcond reads 2 and 3: upgrade gcond"),
        ({"version": 3}, "the form of its features is damaged"),
        ({"version": 1}, "its features are in form 1, and this gcond reads 2 and 3: compact the graph again"),
        ({"version": None}, "its features are in form None"),
        ({"bits": 5}, "bits=5 cannot be"),
        ({"bits": 8}, "x.values has 60 numbers"),
        ({"bits": 16}, "x.values is torch.uint8"),
        ({"bits": [4]}, "bits"),
        ({"entries": 0}, "entries=0"),
        ({"entries": 5}, "its numbers are not compact"),
        ({"features": 99}, "not in 20 × 99|is not what gcond writes|its numbers are not compact"),
        ({"features": 10**15}, "claims 20 × 1,000,000,000,000,000 features"),
        ({"features": "100"}, "the form of its features is damaged"),
        ({"features": -1}, "the form of its features is damaged"),
        ({"signed": 1}, "the form of its features is damaged"),
        ({"signed": False}, "is not what gcond writes"),
        ({"more": 1}, "the form of its features is damaged"),
    ],
)
def test_damaged_forms_are_refused(tmp_path, form, message):
    with pytest.raises(GcondError, match=message):
        CondensedGraph.load(damage(tmp_path, large(), **form))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda p: {"x.codes": None}, "lacks the tensor 'x.codes'"),
        (lambda p: {"x.rest": None}, "lacks the tensor 'x.rest'"),
        (lambda p: {"x.codes": p["x.codes"][:2]}, "x.codes is 2 bytes, which is too few or odd"),
        (lambda p: {"x.codes": p["x.codes"][:-1]}, "too few or odd"),
        (lambda p: {"x.codes": p["x.codes"][:-2]}, "x.codes ends before its entries do"),
        (lambda p: {"x.codes": torch.cat([p["x.codes"], p["x.codes"][:2]])}, "x.codes does not end with its entries"),
        (lambda p: {"x.codes": p["x.codes"].float()}, "x.codes is torch.float32"),
        (lambda p: {"x.rest": p["x.rest"][:-1]}, "x.rest is shorter than its entries"),
        (lambda p: {"x.rest": torch.cat([p["x.rest"], p["x.rest"]])}, "'x.rest' is not what gcond writes"),
        (lambda p: {"x.scale": torch.ones(20)}, "has a tensor 'x.scale' that is not of its form"),
        (lambda p: {"x": torch.ones(20, 100)}, "has features twice"),
    ],
)
def test_damaged_steps_are_refused(tmp_path, change, message):
    graph = large(entries=None, step=0.05)
    with pytest.raises(GcondError, match=message):
        CondensedGraph.load(damage(tmp_path, graph, change(graph.packed)))


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ({"version": 2}, "bits=None cannot be"),
        ({"step": 0.0}, "step=0.0 cannot be"),
        ({"step": 1}, "the form of its features is damaged"),
        ({"step": 1e300}, r"step=1e\+300 cannot be"),
        ({"step": None}, "the form of its features is damaged"),
        ({"largest": -1}, "the form of its features is damaged"),
        ({"largest": 2**20}, "the form of its features is damaged"),
        ({"largest": 4000}, "damaged"),
        ({"largest": 1}, "damaged"),
        ({"signed": False}, "damaged"),
        ({"features": 99}, "damaged"),
        ({"features": 10**7}, r"x.codes is \d+ bytes, which is too few"),
        ({"features": 10**15}, "claims 20 × 1,000,000,000,000,000 features"),
        ({"bits": 8}, "the form of its features is damaged"),
    ],
)
def test_damaged_forms_of_steps_are_refused(tmp_path, form, message):
    with pytest.raises(GcondError, match=message):
        CondensedGraph.load(damage(tmp_path, large(entries=None, step=0.05), **form))


def test_steps_take_fewer_bytes_than_bits_for_a_smaller_loss():
    stream = torch.Generator().manual_seed(2)
    common = torch.rand(300, generator=stream) ** 4  # words are unequally frequent
    x = (torch.rand(30, 300, generator=stream) < common) * torch.rand(30, 300, generator=stream)
    none = {"edge_index": torch.empty(2, 0, dtype=torch.long), "edge_weight": torch.empty(0)}
    graph = CondensedGraph(x=x, y=torch.arange(30) % 3, **none)
    bits, steps = graph.compacted(Compaction(60, 4)), graph.compacted(Compaction(step=0.07))
    assert steps.nbytes < 0.85 * bits.nbytes
    assert float((steps.x - x).square().sum()) < float((bits.x - x).square().sum())


def test_a_form_that_is_no_form(tmp_path):
    large().save(tmp_path / "g")
    tensors, header = read_tensors(tmp_path / "g")
    write_tensors(tmp_path / "g", tensors, {**header, "compaction": [4]})
    with pytest.raises(GcondError, match="the form of its features is damaged"):
        CondensedGraph.load(tmp_path / "g")


@pytest.mark.parametrize(("bits", "step"), [(4, None), (8, None), (16, None), (32, None), (8, 0.05)])
def test_any_other_byte_is_refused_or_means_another_graph(tmp_path, bits, step):
    """There is one form for each graph: what is read from a file is written as that file again."""
    path = tmp_path / "byte.safetensors"
    large(bits, step=step).save(path)
    for content in damaged_tensors(path.read_bytes()):
        path.write_bytes(content)
        if sentence(CondensedGraph.load, path) is None:
            CondensedGraph.load(path).save(path)
            assert path.read_bytes() == content


def test_a_header_with_another_byte_never_ends_in_anything_but_a_sentence(tmp_path):
    path = tmp_path / "header.safetensors"
    small().compacted(Compaction(1, 4)).save(path)
    for content in damaged_headers(path.read_bytes()):
        path.write_bytes(content)
        sentence(CondensedGraph.load, path)
