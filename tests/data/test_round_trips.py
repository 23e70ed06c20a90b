"""Random valid graphs survive every file format; random damage ends in one sentence."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import csv, parquet

import gcond
from gcond.errors import GcondError
from gcond.graph.source_graph import SourceGraph
from gcond.linalg.sparse import SparseMatrix

relaxed = settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
number = st.floats(-1e6, 1e6, width=32).map(lambda value: value + 0.0)  # a table of whole numbers has no -0
PARTS = ("train", "val", "test")


@st.composite
def graphs(draw):
    """Raw columns of a small graph in which both classes train."""
    n = draw(st.integers(4, 12))
    width = draw(st.integers(1, 3))
    node = st.integers(0, n - 1)
    edges = draw(st.lists(st.tuples(node, node), max_size=20))
    return {
        "x": draw(st.lists(st.lists(number, min_size=width, max_size=width), min_size=n, max_size=n)),
        "y": [0, 1, *draw(st.lists(st.sampled_from([0, 1, -1]), min_size=n - 2, max_size=n - 2))],
        "part": ["train", "train", *draw(st.lists(st.sampled_from(["", *PARTS]), min_size=n - 2, max_size=n - 2))],
        "edges": edges,
        "weight": draw(st.lists(st.floats(0.0625, 4, width=16), min_size=len(edges), max_size=len(edges))),
        "ids": draw(
            st.lists(
                st.text("abcXYZ019 -_é", min_size=1, max_size=5).map(str.strip).filter(bool),
                min_size=n,
                max_size=n,
                unique=True,
            )
        ),
    }


def tensors(raw):
    """What the loaded graph must equal."""
    y = torch.tensor(raw["y"])
    part = np.array([word if label >= 0 else "" for word, label in zip(raw["part"], raw["y"], strict=True)])
    return SourceGraph.build(
        name="expected",
        x=torch.tensor(raw["x"]),
        edge_index=torch.tensor(raw["edges"], dtype=torch.long).reshape(-1, 2).T,
        edge_weight=torch.tensor(raw["weight"]),
        y=y,
        **{name: torch.from_numpy(part == name) for name in PARTS},
    )


def write_tables(folder, raw, kind, *, as_list):
    part = [word if label >= 0 else "" for word, label in zip(raw["part"], raw["y"], strict=True)]
    nodes = {"id": raw["ids"], "label": [label if label >= 0 else None for label in raw["y"]], "split": part}
    if as_list:
        nodes["x"] = pa.array(raw["x"], pa.list_(pa.float32()))
    else:
        nodes |= {f"f{at}": [row[at] for row in raw["x"]] for at in range(len(raw["x"][0]))}
    edges = {
        "source": pa.array([raw["ids"][one] for one, _ in raw["edges"]], pa.string()),
        "target": pa.array([raw["ids"][other] for _, other in raw["edges"]], pa.string()),
        "weight": pa.array(raw["weight"], pa.float64()),
    }
    for name, columns in (("nodes", nodes), ("edges", edges)):
        table = pa.table(columns)
        if kind == ".csv":
            csv.write_csv(table, folder / f"{name}.csv")
        else:
            parquet.write_table(table, folder / f"{name}.parquet")


@relaxed
@given(raw=graphs(), kind=st.sampled_from([".csv", ".parquet", "lists"]))
def test_tables_round_trip(raw, kind, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    write_tables(folder, raw, ".csv" if kind == ".csv" else ".parquet", as_list=kind == "lists")
    assert gcond.load(folder, features="none").sha256 == tensors(raw).sha256  # which may be all alike


@relaxed
@given(raw=graphs(), dense=st.booleans())
def test_npz_round_trips(raw, dense, tmp_path_factory):
    path = tmp_path_factory.mktemp("npz") / "g.npz"
    expected = tensors(raw)
    x = expected.x.to_dense() if isinstance(expected.x, SparseMatrix) else expected.x
    arrays = {f"{part}_mask": expected.mask(part).numpy() for part in PARTS} | {"labels": expected.y.numpy()}
    matrices = {"adj": expected.adjacency.to_scipy().T.tocsr()}
    if dense:
        arrays["attr_matrix"] = x.numpy()
    else:
        matrices["attr"] = scipy.sparse.csr_matrix(x.numpy())
    for prefix, matrix in matrices.items():
        arrays |= {
            f"{prefix}_{part}": np.array(getattr(matrix, part)) for part in ("data", "indices", "indptr", "shape")
        }
    np.savez_compressed(path, **arrays)
    assert torch.equal(gcond.load(path).adjacency.to_dense(), expected.adjacency.to_dense())
    found = gcond.load(path, features="none").x
    assert torch.equal(found.to_dense() if isinstance(found, SparseMatrix) else found, x)


RAW = {
    "x": [[float(i), 1.0] for i in range(12)],
    "y": [i % 2 for i in range(12)],
    "part": (["train"] * 4 + ["val"] * 4 + ["test"] * 4),
    "edges": [(i, (i + 1) % 12) for i in range(12)],
    "weight": [1.0] * 12,
    "ids": [f"n{i}" for i in range(12)],
}


def ogb_folder(folder):
    rows = {
        "raw/edge": RAW["edges"],
        "raw/node-feat": RAW["x"],
        "raw/node-label": [[label] for label in RAW["y"]],
        "split/time/train": [[i] for i in range(4)],
        "split/time/valid": [[i] for i in range(4, 8)],
        "split/time/test": [[i] for i in range(8, 12)],
    }
    for name, values in rows.items():
        path = folder / f"{name}.csv.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress("".join(",".join(map(str, row)) + "\n" for row in values).encode()))


def saint_folder(folder):
    scipy.sparse.save_npz(folder / "adj_full.npz", tensors(RAW).adjacency.to_scipy())
    np.save(folder / "feats.npy", np.array(RAW["x"]))
    (folder / "class_map.json").write_text(json.dumps({str(at): label for at, label in enumerate(RAW["y"])}))
    (folder / "role.json").write_text(json.dumps({"tr": [0, 1, 2, 3], "va": [4, 5], "te": [6, 7]}))


def single_file(folder):
    expected = tensors(RAW)
    arrays = {"labels": expected.y.numpy(), "attr_matrix": np.array(RAW["x"])}
    matrix = expected.adjacency.to_scipy()
    arrays |= {f"adj_{part}": np.array(getattr(matrix, part)) for part in ("data", "indices", "indptr", "shape")}
    np.savez_compressed(folder / "g.npz", **arrays)


def saved_graph(folder):
    tensors(RAW).save(folder / "g.safetensors")


def outcome(source):
    """What is wrong with the source, or nothing; whatever is not a GcondError fails the test."""
    try:
        gcond.load(source)
    except GcondError as error:
        return str(error)
    return ""


WRITERS = {
    "csv": lambda folder: write_tables(folder, RAW, ".csv", as_list=False),
    "parquet": lambda folder: write_tables(folder, RAW, ".parquet", as_list=True),
    "ogb": ogb_folder,
    "saint": saint_folder,
    "npz": single_file,
    "safetensors": saved_graph,
}


@pytest.mark.parametrize("form", list(WRITERS))
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damage_is_one_sentence(form, data, tmp_path_factory):
    """Cut a file short, or overwrite some of its bytes: it loads, or it is a GcondError, and nothing else."""
    folder = tmp_path_factory.mktemp(form)
    WRITERS[form](folder)
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    path = data.draw(st.sampled_from(files), "file")
    content = bytearray(path.read_bytes())
    if data.draw(st.booleans(), "cut"):
        content = content[: data.draw(st.integers(0, len(content) - 1), "length")]
    else:
        at = data.draw(st.integers(0, len(content) - 1), "position")
        patch = data.draw(st.binary(min_size=1, max_size=8), "patch")
        content[at : at + len(patch)] = patch
    path.write_bytes(bytes(content))
    source = files[0] if form in ("npz", "safetensors") else folder
    assert "\n" not in outcome(source)
