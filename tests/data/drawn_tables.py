"""Tables of nodes and edges as hypothesis draws them, in all the ways in which people write them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st
from pyarrow import csv, parquet

LETTERS = st.characters(codec="utf-8", categories=("L", "N"), include_characters="-_ é漢")


@dataclass(frozen=True)
class Tables:
    """Two tables, and how they are written: as which kind of file, and in how many."""

    nodes: pa.Table
    edges: pa.Table
    kind: str
    node_files: int
    edge_files: int
    in_folders: bool

    def write(self, folder: Path) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        for part, table, count in (("nodes", self.nodes, self.node_files), ("edges", self.edges, self.edge_files)):
            writer = csv.write_csv if self.kind == ".csv" else parquet.write_table
            if count == 1:
                writer(table, folder / f"{part}{self.kind}")
                continue
            cuts = np.linspace(0, table.num_rows, count + 1).astype(int)
            for at in range(count):
                piece = table.slice(cuts[at], cuts[at + 1] - cuts[at])
                place = folder / part / f"{at}{self.kind}" if self.in_folders else folder / f"{part}-{at}{self.kind}"
                place.parent.mkdir(exist_ok=True)
                writer(piece, place)
        return folder


@st.composite
def tables(draw: Any) -> Tables:
    """Tables of a graph that nothing is wrong with."""
    kind = draw(st.sampled_from([".csv", ".parquet"]))
    classes = draw(st.integers(2, 3))
    n = draw(st.integers(4 * classes, 18))
    ids, columns = _ids(draw, n)
    columns |= _labels(draw, n, classes)
    columns |= _features(draw, n, kind)
    if len(columns) == 1:  # in a text file a line with nothing on it is no node
        columns["f0"] = pa.array(range(n))
    return Tables(
        pa.table(columns),
        _edges(draw, n, ids),
        kind,
        draw(st.integers(1, 3)),
        draw(st.integers(1, 3)),
        draw(st.booleans()),
    )


def _ids(draw: Any, n: int) -> tuple[pa.Array, dict[str, pa.Array]]:
    """What edges call the nodes, and the column ``id`` if there is one."""
    how = draw(st.sampled_from(["none", "rows", "rows as text", "numbers", "text"]))
    if how == "none":
        return pa.array(range(n)), {}
    if how == "rows":
        ids = pa.array(range(n), draw(st.sampled_from([pa.int32(), pa.int64(), pa.uint64()])))
    elif how == "rows as text":
        ids = pa.array([str(row) for row in range(n)])
    elif how == "numbers":
        ids = pa.array(draw(st.lists(st.integers(-(2**62), 2**62), min_size=n, max_size=n, unique=True)), pa.int64())
    else:
        names = st.text(LETTERS, min_size=1, max_size=6).map(str.strip).filter(bool)
        ids = pa.array(draw(st.lists(names, min_size=n, max_size=n, unique=True)), pa.string())
    return ids, {"id": ids}


def _labels(draw: Any, n: int, classes: int) -> dict[str, pa.Array]:
    """``label``, of which every class has three nodes, and often ``split``."""
    names = draw(st.sampled_from([[0, 1, 2], [5, -1, 30], ["red", "blue", "é"], ["1.0", "+0", "2"]]))
    label = [names[node % classes] for node in range(n)]
    bare = draw(st.sets(st.integers(3 * classes, n - 1), max_size=3)) if n > 3 * classes else set()
    label = [None if node in bare else name for node, name in enumerate(label)]
    made = {"label": pa.array(label)}
    if draw(st.booleans()):
        parts = draw(st.lists(st.sampled_from(["train", "Val", " test", "", None]), min_size=n, max_size=n))
        split = ["train" if node < classes else "" if node in bare else part for node, part in enumerate(parts)]
        made["split"] = pa.array(split, pa.string())
    return made


def _features(draw: Any, n: int, kind: str) -> dict[str, pa.Array]:
    how = draw(st.sampled_from(["none", "wide"] if kind == ".csv" else ["none", "wide", "list", "sparse"]))
    # In a block of whole numbers "-0" is 0.
    numbers = st.floats(-1e6, 1e6, width=32).map(lambda number: number + 0.0)
    width = draw(st.integers(1, 5))
    if how == "none":
        return {}
    if how == "wide":
        column = st.one_of(
            st.lists(st.integers(-99, 99), min_size=n, max_size=n),
            st.lists(st.one_of(st.just(0.0), numbers), min_size=n, max_size=n),
            st.lists(st.booleans(), min_size=n, max_size=n).filter(lambda drawn: kind == ".parquet"),
        )
        return {f"f{at}": pa.array(draw(column)) for at in range(width)}
    if how == "list":
        mostly = st.one_of(st.just(0.0), numbers) if draw(st.booleans()) else st.sampled_from([0.0] * 30 + [1.5])
        rows = draw(st.lists(st.lists(mostly, min_size=width, max_size=width), min_size=n, max_size=n))
        return {"x": pa.array(rows, draw(st.sampled_from([pa.list_(pa.float32()), pa.list_(pa.float64(), width)])))}
    entry = st.tuples(st.integers(0, 40), numbers)
    rows = draw(st.lists(st.lists(entry, max_size=4), min_size=n, max_size=n).filter(any))
    made = {"feature_index": pa.array([[at for at, _ in row] for row in rows], pa.list_(pa.int32()))}
    if draw(st.booleans()):
        made["feature_value"] = pa.array([[value for _, value in row] for row in rows], pa.list_(pa.float32()))
    return made


def _edges(draw: Any, n: int, ids: pa.Array) -> pa.Table:
    """Edges with doubles, loops and one-way ones among them, and weights that differ by direction or are 0."""
    ends = st.integers(0, n - 1)
    pairs = draw(st.lists(st.tuples(ends, ends), max_size=40))
    source, target = ([pair[end] for pair in pairs] for end in range(2))
    columns = {"source": ids.take(pa.array(source, pa.int64())), "target": ids.take(pa.array(target, pa.int64()))}
    if draw(st.booleans()):
        weights = st.one_of(st.sampled_from([0.0, 1.0, 0.5]), st.floats(0, 9, width=32))
        columns["weight"] = pa.array([draw(weights) for _ in pairs], pa.float64())
    if draw(st.booleans()):
        columns["since"] = pa.array(range(len(pairs)), pa.int64())
    return pa.table(columns)
