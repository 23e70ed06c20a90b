"""A folder of tables: what is read, and every mistake with its sentence."""

from __future__ import annotations

import pyarrow as pa
import pytest
import torch
from pyarrow import csv, parquet

import gcond
from gcond.errors import GcondError

NODES = {
    "id": ["a", "b", "c", "d", "e", "f"],
    "label": ["red", "blue", "red", "blue", "red", ""],
    "split": ["train", "train", "val", "test", "", ""],
    "age": [1, 2, 3, 4, 5, 6],
    "weight": [0.5, 1.5, 2.5, 3.5, 4.5, 5.5],
}
EDGES = {"source": ["a", "b", "c"], "target": ["b", "c", "d"]}


@pytest.fixture(params=[".csv", ".parquet"])
def kind(request):
    return request.param


@pytest.fixture
def save(tmp_path):
    def write(nodes=None, edges=None, kind=".csv", **changes):
        nodes = {key: value for key, value in ((nodes or NODES) | changes).items() if value is not None}
        for name, columns in (("nodes", nodes), ("edges", EDGES if edges is None else edges)):
            table = columns if isinstance(columns, pa.Table) else pa.table(columns)
            writer = csv.write_csv if kind == ".csv" else parquet.write_table
            writer(table, tmp_path / f"{name}{kind}")
        return tmp_path

    return write


def text(folder, nodes, edges="source,target\n0,1\n"):
    (folder / "nodes.csv").write_text(nodes)
    (folder / "edges.csv").write_text(edges)
    return folder


def test_a_graph_as_people_keep_it(save, kind):
    graph = gcond.load(save(kind=kind))
    assert graph.class_names == ("blue", "red")
    assert graph.y.tolist() == [1, 0, 1, 0, 1, -1]
    assert graph.x.tolist() == [[i + 1, i + 0.5] for i in range(6)]  # 'weight' is a feature of nodes
    assert graph.train_mask.tolist() == [True, True, False, False, False, False]
    assert graph.val_mask.nonzero().flatten().tolist() == [2]
    assert graph.test_mask.nonzero().flatten().tolist() == [3]
    assert graph.num_edges == 3
    assert graph.adjacency.to_dense()[1, 0] == 1
    assert graph.notes[0] == "the split is the table's own"


@pytest.mark.parametrize("both_ways", [False, True])
def test_density_does_not_depend_on_how_often_a_pair_is_listed(both_ways, save, kind):
    edges = {"source": ["a", "b"], "target": ["b", "a"]} if both_ways else {"source": ["a"], "target": ["b"]}
    found = gcond.load(save(edges=edges, kind=kind)).statistics
    assert found.listed_edges == 1
    assert found.density == pytest.approx(2 / 36)


def test_weights_direction_and_unused_columns(save, kind):
    edges = EDGES | {"weight": [1.0, 2.0, 0.25], "since": ["x", "y", "z"]}
    graph = gcond.load(save(edges=edges, kind=kind), directed=True, setting="inductive")
    dense = graph.adjacency.to_dense()
    assert (dense[1, 0], dense[2, 1], dense[3, 2], dense[0, 1]) == (1.0, 2.0, 0.25, 0)
    assert graph.setting == "inductive"
    assert any("since" in note for note in graph.notes)


def test_ids_can_be_left_out_or_be_numbers(save, kind):
    numbered = gcond.load(save(id=None, edges={"source": [0, 1], "target": [1, 5]}, kind=kind))
    assert numbered.adjacency.to_dense()[5, 1] == 1
    large = gcond.load(save(id=[10, 20, 30, 40, 50, 2**40], edges={"source": [10], "target": [2**40]}, kind=kind))
    assert large.adjacency.to_dense()[5, 0] == 1


def test_ids_in_csv_are_what_is_written(tmp_path):
    folder = text(tmp_path, "id,label,split,x\n007,0,train,1\n7,1,train,2\n08,0,,3\n", "source,target\n007,08\n")
    assert gcond.load(folder).adjacency.to_dense().nonzero().tolist() == [[0, 2], [2, 0]]


@pytest.mark.parametrize(
    "columns",
    [
        {"x": pa.array([[i, i + 1.5] for i in range(6)], pa.list_(pa.float64(), 2))},
        {"x": pa.array([[i, i + 1.5] for i in range(6)], pa.list_(pa.float32()))},
        {"x": pa.array([[i, i + 1.5] for i in range(6)], pa.large_list(pa.float64()))},
        {"one": list(range(6)), "two": [i + 1.5 for i in range(6)]},
    ],
)
def test_list_columns_are_features(columns, save):
    graph = gcond.load(save(age=None, weight=None, kind=".parquet", **columns))
    assert torch.equal(graph.x, torch.tensor([[i, i + 1.5] for i in range(6)]))


@pytest.mark.parametrize(
    ("labels", "y", "names"),
    [
        (pa.array([0, 1, 0, 1, 0, None]), [0, 1, 0, 1, 0, -1], ()),
        (pa.array([-1, 1, -1, 1, -1, None]), [0, 1, 0, 1, 0, -1], ("-1", "1")),
        (pa.array(["-1", "+1", "-1", "1", "-1", ""]), [0, 1, 0, 1, 0, -1], ("-1", "1")),
        (pa.array([-5, 0, -5, 0, -5, None]), [0, 1, 0, 1, 0, -1], ("-5", "0")),
        (pa.array([0.0, 1.0, 0.0, 1.0, 0.0, float("nan")]), [0, 1, 0, 1, 0, -1], ()),
        (pa.array([False, True, False, True, False, None]), [0, 1, 0, 1, 0, -1], ()),
        (pa.array([5, 30, 5, 30, 5, None]), [0, 1, 0, 1, 0, -1], ("5", "30")),
        (pa.array(["b", "a", "b", "a", "b", None]), [1, 0, 1, 0, 1, -1], ("a", "b")),
        (pa.array(["b", "a", "b", "a", "b", None]).dictionary_encode(), [1, 0, 1, 0, 1, -1], ("a", "b")),
        (pa.array(["1.0", "0.0", "1.0", "0.0", "1.0", ""]), [1, 0, 1, 0, 1, -1], ()),
    ],
)
def test_labels_of_every_type(labels, y, names, save):
    graph = gcond.load(save(label=labels, kind=".parquet"))
    assert graph.y.tolist() == y
    assert graph.class_names == names


def test_only_an_empty_label_is_unlabelled(save, kind):
    graph = gcond.load(save(label=[1, -1, 1, -1, 1, None], kind=kind))
    assert graph.class_names == ("-1", "1")
    assert graph.y.tolist() == [1, 0, 1, 0, 1, -1]
    assert any("-1 is one of them: leave a label empty" in note for note in graph.notes)
    assert not any("-1" in note for note in gcond.load(save(label=[5, 7, 5, 7, 5, None], kind=kind)).notes)


def test_feature_columns_are_named(save, kind):
    assert "2 feature columns: age, weight" in gcond.load(save(kind=kind)).notes
    assert "1 feature column: age" in gcond.load(save(weight=None, kind=kind)).notes
    five = {f"f{at}": [at] * 6 for at in range(3)}
    assert "5 feature columns: age, weight, f0, f1, f2" in gcond.load(save(kind=kind, **five)).notes
    seven = {f"f{at}": [at] * 6 for at in range(5)}
    assert "7 feature columns: age, weight, f0, f1, f2, …" in gcond.load(save(kind=kind, **seven)).notes


def test_the_list_column_is_named(save):
    graph = gcond.load(save(age=None, weight=None, x=pa.array([[1.0, 2.0, 3.0]] * 6), kind=".parquet"))
    assert "1 feature column: x (lists of 3)" in graph.notes


def test_unused_edge_columns_are_named(save, kind):
    one = gcond.load(save(edges=EDGES | {"since": [1, 2, 3]}, kind=kind))
    assert "not used of the edges: 1 column: since" in one.notes
    many = gcond.load(save(edges=EDGES | {f"e{at}": [1, 2, 3] for at in range(9)}, kind=kind))
    assert "not used of the edges: 9 columns: e0, e1, e2, e3, e4, …" in many.notes


def test_without_a_split_one_is_drawn(save, kind):
    graph = gcond.load(save(split=None, label=["a", "b"] * 3, kind=kind), seed=5)
    assert [int(graph.mask(part).sum()) for part in ("train", "val", "test")] == [2, 2, 2]
    assert "seed 5" in graph.notes[0]


def test_booleans_are_numbers_and_edges_may_be_none(save):
    graph = gcond.load(save(age=[True, False] * 3, edges=pa.table({"source": [], "target": []}), kind=".parquet"))
    assert graph.x[:, 0].tolist() == [1, 0] * 3
    assert graph.num_edges == 0


BAD_NODES = [
    ({"age": ["one"] * 6}, "column 'age' .* is not numeric .row 1 says 'one'"),
    ({"age": [1, None, 3, 4, 5, 6]}, "column 'age' .* is empty or nan in row 2"),
    ({"age": [1.0, float("inf"), 3, 4, 5, 6]}, "must be a finite number"),
    ({"age": [1e300] * 6}, "must be a finite number"),
    ({"label": None}, "has no column 'label'"),
    ({"label": [None] * 6}, "no node is labelled"),
    ({"label": [0, 1, 0, 1, 0, -1]}, "no training node of class '-1'"),
    (
        {"train_mask": [True] * 6},
        "'train_mask' .* looks like a split .* give one column 'split' with train, val, test",
    ),
    ({"split": None, "Val_Mask": [0] * 6}, "'Val_Mask' .* looks like a split"),
    ({"test_mask": [0.5] * 6}, "'test_mask' .* looks like a split"),
    ({"mask": ["train"] * 6}, "'mask' .* looks like a split"),
    ({"id": ["a", "b", "c", "d", "e", "a"]}, "id 'a' appears more than once"),
    ({"id": ["a", "b", "c", "d", "e", ""]}, "'id' .* is empty in row 6"),
    ({"id": ["a", "b", "c", "x", "e", "f"]}, "row 3 .* names the target 'd'"),
    ({"id": None}, "no row number"),
    ({"split": ["train", "train", "vali", "", "", ""]}, "split 'vali' .* unknown: write train, val, test"),
    ({"split": ["train", "val", "", "", "", ""]}, "no training node of class 'blue'"),
    ({"split": ["train", "train", "", "", "", "test"]}, "1 test nodes have no label"),
]


@pytest.mark.parametrize(("changes", "message"), BAD_NODES)
def test_bad_nodes(changes, message, save, kind):
    with pytest.raises(GcondError, match=message) as error:
        gcond.load(save(kind=kind, **changes))
    assert "\n" not in str(error.value)


def test_the_value_that_is_no_number_is_quoted_with_its_row(save, kind):
    with pytest.raises(GcondError, match=r"column 'age' .* is not numeric .row 4 says 'three'"):
        gcond.load(save(kind=kind, age=["1", "2.5", "", "three", "-4e2", "x"]))


BAD_EDGES = [
    ({"source": ["a"]}, "no column 'target'"),
    ({"from": ["a"], "to": ["b"]}, "no column 'source'"),
    (EDGES | {"weight": ["heavy"] * 3}, "'weight' .* not numeric"),
    (EDGES | {"weight": [1.0, -1.0, 1.0]}, r"^row 2 of '.*edges\..*' has weight -1: weights must not be negative"),
    (EDGES | {"weight": [1.0, 1.0, float("inf")]}, r"weight of row 3 of '.*' is inf"),
    (EDGES | {"weight": [1.0, None, 1.0]}, "empty or nan in row 2"),
    (EDGES | {"source": ["a", None, "b"]}, "row 2 .* names the source ''"),
]


@pytest.mark.parametrize(("edges", "message"), BAD_EDGES)
def test_bad_edges(edges, message, save, kind):
    with pytest.raises(GcondError, match=message):
        gcond.load(save(edges=edges, kind=kind))


BAD_LISTS = [
    (pa.array([[1.0], [1.0, 2.0], [1.0], [1.0], [1.0], [1.0]]), "2 numbers in row 2 and 1 in row 1"),
    (pa.array([[1.0], None, [1.0], [1.0], [1.0], [1.0]]), "empty in row 2"),
    (pa.array([[1.0], [None], [1.0], [1.0], [1.0], [1.0]]), "entry that is empty or nan in row 2"),
    (pa.array([["a"]] * 6), "lists of string"),
    (pa.array([[]] * 6, pa.list_(pa.float32())), "0 numbers in row 1"),
]


@pytest.mark.parametrize(("x", "message"), BAD_LISTS)
def test_bad_lists(x, message, save):
    with pytest.raises(GcondError, match=message):
        gcond.load(save(age=None, weight=None, x=x, kind=".parquet"))
    with pytest.raises(GcondError, match="beside other features"):
        gcond.load(save(x=x, kind=".parquet"))


BAD_CSV = [
    ("", "is empty"),
    ("label,x\n", "has no rows"),
    ("label,x\n0,1\n0\n", "damaged or not a csv"),
    ("label,x,x\n0,1,2\n", "two columns 'x'"),
    (",label,x\n0,0,1\n", "column without a name"),
    ("label,x\n0,1\n1,\n", "'x' .* is empty or nan in row 2"),
    ("label,x\n0,\n1,\n", "column 'x' .* is empty"),
]


@pytest.mark.parametrize(("nodes", "message"), BAD_CSV)
def test_bad_csv(nodes, message, tmp_path):
    with pytest.raises(GcondError, match=message):
        gcond.load(text(tmp_path, nodes))


def test_missing_tables(save, kind):
    folder = save(kind=kind)
    (folder / f"edges{kind}").unlink()
    with pytest.raises(GcondError, match=r"has no edges\.parquet or edges\.csv"):
        gcond.load(folder)
    (folder / f"nodes{kind}").rename(folder / f"edges{kind}")
    with pytest.raises(GcondError, match=r"has no nodes\.parquet"):
        gcond.load(folder)


def test_table_that_cannot_fit(save, kind, monkeypatch):
    folder = save(kind=kind)
    monkeypatch.setattr("gcond.data.size_check.available_bytes", lambda: 10)
    with pytest.raises(GcondError, match="GB of memory"):
        gcond.load(folder)


def test_tables_without_features_get_structural_ones(save, kind):
    graph = gcond.load(save(age=None, weight=None, kind=kind))
    assert graph.transform.kind == "structural"
    assert any("there are no features, so" in note for note in graph.notes)


def test_features_of_tables_are_chosen_by_validation(save, kind):
    graph = gcond.load(save(kind=kind))
    assert graph.notes[-1].startswith("the features are used as they are, by validation accuracy")
    assert gcond.load(save(kind=kind), features="none").notes == graph.notes[:-1]
