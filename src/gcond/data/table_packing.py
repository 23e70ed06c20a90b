"""Node and edge tables on their way into a packed store, block by block; edges are joined with ids out of core."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gcond.data.edge_sorting import EdgeBlock
from gcond.data.load_request import Request
from gcond.data.store_packing import GROWTH, ROWS, Packing, disk_for_edges
from gcond.data.store_writing import ArrayFile
from gcond.data.table_file import Table, TableFiles
from gcond.data.table_folder import (
    OWN_SPLIT,
    NodeTable,
    damaged,
    edge_notes,
    find,
    row_numbers,
    unknown_end,
)
from gcond.data.table_ids import has_whole_ids, node_ids, twice
from gcond.errors import GcondError
from gcond.graph.stored_arrays import IdKind
from gcond.runtime.memory import hand_back

if TYPE_CHECKING:
    import pyarrow

    from gcond.data.out_of_core import OutOfCore

ENDS = ("source", "target")
MOST_LABELS = 2**20
"""Different labels that are kept while nodes go through; no class has so few nodes."""


def pack_tables(folder: Path, request: Request, packing: Packing) -> None:
    """Nodes, then edges, then what the store says."""
    import pyarrow as pa

    try:
        _pack(NodeTable(find(folder, "nodes")), find(folder, "edges"), request, packing)
    except (pa.ArrowException, UnicodeDecodeError) as error:  # damage that shows only when a column is decoded
        raise damaged(folder, error) from None


def _pack(nodes: NodeTable, files: TableFiles, request: Request, packing: Packing) -> None:
    store = packing.store
    packing.require_engine(growth=GROWTH)
    first = next(files.blocks())  # what is wrong with the columns is told before any work
    for end in ENDS:
        first.column(end)
    weighted = "weight" in first
    about = files.about_rows
    joined = about * 12 if "id" in next(nodes.files.blocks()) else 0
    packing.require_disk(nodes.files.unpacked_bytes + disk_for_edges(about, weighted=weighted) + joined)

    ids, words = _add_nodes(nodes, packing)
    lookup, class_names, label_notes = nodes.classes()
    with store.array("y") as y:
        for block in words.blocks(ROWS):
            y.append(lookup[block])
    words.path.unlink()
    classes = packing.classes(class_names)
    note = OWN_SPLIT if "split" in store.arrays else packing.draw_split(request.seed, class_names)
    packing.check_split(classes, class_names)
    hand_back()
    engine = packing.engine()
    edges = _Edges(files, nodes.files, ids, packing, weighted=weighted)
    try:
        packing.add_edges(edges.numbered(engine), engine, weighted=weighted, directed=request.directed, total=about)
    except _UnknownEndError:  # which one is asked for now, when the engine is not at work any more
        raise edges.unknown(engine) from None
    if ids is not None and ids.are_row_numbers:
        ids.drop()
    packing.finish(
        request,
        nodes.width,
        request.setting or "transductive",
        (note, *nodes.feature_notes(), *label_notes, *edge_notes(first)),
        classes=classes,
        class_names=class_names,
        feature_names=nodes.feature_names,
        usual="auto",
        ids=ids.kind if ids is not None else "",
    )


def _add_nodes(nodes: NodeTable, packing: Packing) -> tuple[_Ids | None, ArrayFile]:
    """Features, parts and ids to the store, block by block, and labels by their place in the list to a file."""
    store = packing.store
    total = nodes.files.about_rows
    words = ArrayFile(store.folder / "words.npy", "<i8")
    ids: _Ids | None = None
    for block in nodes.blocks():
        if block.x is not None:
            packing.add_features(block.x)
        words.append(block.label)
        if len(nodes.labels) > MOST_LABELS:
            raise GcondError(
                f"the column 'label' of '{block.table.file}' has more than {MOST_LABELS} different labels: is it an id?"
            )
        if block.split is not None:
            store.array("split").append(block.split)
        if "id" in block.table:
            ids = ids or _Ids(packing)
            ids.add(block.table)
        packing.nodes += block.rows
        packing.plan.tick("nodes", packing.nodes, max(packing.nodes, total))
    words.close()
    return ids, words


class _UnknownEndError(Exception):
    """An edge names a node that there is not."""


class _Ids:
    """The ids of all nodes, kept as text in the store."""

    def __init__(self, packing: Packing) -> None:
        self.are_row_numbers = True
        self.are_integers = True
        """Whether every file has them as whole numbers, so that they can be compared as such."""
        self.kind: IdKind = "numbers"
        """As what the table has them, whatever is kept of them."""
        self._packing = packing
        self._offsets = packing.store.array("ids.offsets")
        self._bytes = packing.store.array("ids.bytes")
        self._offsets.append(np.zeros(1, np.int64))

    def add(self, table: Table) -> None:
        """The ids of the nodes that come next."""
        import pyarrow as pa
        import pyarrow.compute as pc

        ids = node_ids(table)
        first = self._packing.nodes
        rows = pa.array(np.arange(first, first + len(ids))).cast(pa.string())
        self.are_row_numbers = self.are_row_numbers and bool(pc.all(pc.equal(ids, rows)).as_py())
        self.are_integers = self.are_integers and _signed(table.column("id").type)
        self.kind = self.kind if has_whole_ids(table) else "text"
        lengths = pc.binary_length(ids).to_numpy().astype(np.int64)
        self._offsets.append(self._bytes.rows + np.cumsum(lengths))
        _, places, content = ids.buffers()
        start = int(np.frombuffer(places, np.int32)[ids.offset])
        self._bytes.append(np.frombuffer(content, np.uint8)[start : start + int(lengths.sum())])

    def batches(self, kind: pyarrow.DataType) -> Iterator[pyarrow.RecordBatch]:
        """Ids and row numbers, block by block, with the ids as ``kind``."""
        import pyarrow as pa

        first = 0
        for offsets in self._offsets.blocks(ROWS // 4, overlap=1):
            start, stop = int(offsets[0]), int(offsets[-1])
            content = pa.py_buffer(self._bytes.read(start, stop))
            places = pa.py_buffer((offsets - start).astype(np.int32))
            names = pa.StringArray.from_buffers(len(offsets) - 1, places, content)
            rows = pa.array(np.arange(first, first + len(names), dtype=np.int32))
            first += len(names)
            yield pa.RecordBatch.from_arrays([names.cast(kind), rows], names=["name", "place"])

    def drop(self) -> None:
        """Leave them out of the store: a node's name is its row number."""
        self._packing.store.drop("ids.offsets")
        self._packing.store.drop("ids.bytes")


class _Edges:
    """The edge table, with the ends of each edge as rows of the node table."""

    def __init__(
        self, files: TableFiles, nodes: TableFiles, ids: _Ids | None, packing: Packing, *, weighted: bool
    ) -> None:
        self._files, self._nodes, self._ids, self._packing, self._weighted = files, nodes, ids, packing, weighted

    def numbered(self, engine: OutOfCore) -> Iterator[EdgeBlock]:
        """Every edge, in any order; an end that no node has for its id is refused."""
        if self._ids is None:
            return self._listed()
        whole = self._ids.are_integers and all(_signed(kind) for kind in self._end_types())
        if self._ids.are_row_numbers and whole:
            return self._by_number()
        return self._joined(engine, whole=whole)

    def _blocks(self) -> Iterator[Table]:
        """Blocks that all have weights, or none of them."""
        first: Table | None = None
        for table in self._files.blocks():
            first = first or table
            if "weight" in table and not self._weighted:
                first.column("weight")
            yield table

    def _weight(self, table: Table) -> np.ndarray | None:
        return table.weights().numpy() if self._weighted else None

    def _end_types(self) -> Iterator[pyarrow.DataType]:
        from pyarrow import parquet

        for path in self._files.files:
            if path.suffix != ".parquet":
                yield None
                continue
            schema = parquet.read_schema(path)
            yield from (schema.field(end).type for end in ENDS if end in schema.names)

    def _listed(self) -> Iterator[EdgeBlock]:
        """Edges between nodes that have no ids."""
        for table in self._blocks():
            source, target = (row_numbers(table, end).numpy() for end in ENDS)
            yield source, target, self._weight(table)

    def _by_number(self) -> Iterator[EdgeBlock]:
        """Edges between nodes whose ids are their row numbers."""
        n = self._packing.nodes
        for table in self._blocks():
            ends = [table.column(end) for end in ENDS]
            if any(end.null_count for end in ends):
                raise _UnknownEndError
            source, target = (end.to_numpy().astype(np.int64) for end in ends)
            if len(source) and (min(source.min(), target.min()) < 0 or max(source.max(), target.max()) >= n):
                raise _UnknownEndError
            yield source, target, self._weight(table)

    def _joined(self, engine: OutOfCore, *, whole: bool) -> Iterator[EdgeBlock]:
        """Edges between nodes whose ids are looked up; what was found is kept in a file, for the sort to read."""
        import pyarrow as pa

        assert self._ids is not None
        kind = pa.int64() if whole else pa.string()
        self._keep_names(engine, kind)
        twin = "SELECT name FROM names GROUP BY name HAVING count(*) > 1 ORDER BY min(place) LIMIT 1"
        for found in engine.query(twin):
            if found.num_rows:
                raise twice(str(found.column(0)[0].as_py()), self._nodes.shown)
        record = np.dtype([("source", "<i4"), ("target", "<i4"), *([("weight", "<f4")] if self._weighted else [])])
        place = self._packing.store.folder / "numbered"
        schema = pa.schema([*((end, kind) for end in ENDS), *([("weight", pa.float32())] if self._weighted else [])])
        asked = f"""
            SELECT one.place AS source, other.place AS target{", weight" if self._weighted else ""} FROM listed
            LEFT JOIN names AS one ON listed.source = one.name LEFT JOIN names AS other ON listed.target = other.name
        """
        unknown = False
        with open(place, "wb") as file:
            for batch in engine.query(asked, listed=(schema, self._named_batches(schema))):
                if unknown := any(batch.column(at).null_count for at in range(2)):
                    break
                rows = np.empty(batch.num_rows, record)
                for at, name in enumerate(record.names or ()):
                    rows[name] = batch.column(at).to_numpy()
                rows.tofile(file)
        if unknown:
            raise _UnknownEndError
        engine.drop("names")
        return self._kept(place, record)

    @staticmethod
    def _kept(place: Path, record: np.dtype[Any]) -> Iterator[EdgeBlock]:
        with open(place, "rb") as file:
            while len(rows := np.fromfile(file, record, ROWS // 2)):
                weight = np.ascontiguousarray(rows["weight"]) if "weight" in (record.names or ()) else None
                yield rows["source"].astype(np.int64), rows["target"].astype(np.int64), weight
        place.unlink()

    def _keep_names(self, engine: OutOfCore, kind: pyarrow.DataType) -> None:
        import pyarrow as pa

        assert self._ids is not None
        engine.keep("names", pa.schema([("name", kind), ("place", pa.int32())]), self._ids.batches(kind))

    def _named_batches(self, schema: pyarrow.Schema) -> Iterator[pyarrow.RecordBatch]:
        import pyarrow as pa

        done, total = 0, self._files.about_rows
        for table in self._blocks():
            ends = [
                table.column(end) if pa.types.is_integer(schema.field(end).type) else table.text(end) for end in ENDS
            ]
            columns = [end.cast(schema.field(name).type) for name, end in zip(ENDS, ends, strict=True)]
            if (weight := self._weight(table)) is not None:
                columns.append(pa.chunked_array([weight]))
            done += table.data.num_rows
            self._packing.plan.tick("joining edges with ids", done, max(done, total))
            yield from pa.table(columns, schema=schema).to_batches()

    def unknown(self, engine: OutOfCore) -> GcondError:
        """The sentence on the first source, or else the first target, that is no node's id."""
        import pyarrow as pa

        engine.drop("names")
        self._keep_names(engine, pa.string())
        schema = pa.schema([("place", pa.int64()), ("name", pa.string())])
        asked = "SELECT * FROM listed ANTI JOIN names ON listed.name = names.name ORDER BY place LIMIT 1"
        for end in ENDS:
            for found in engine.query(asked, listed=(schema, self._text_batches(end, schema))):
                if found.num_rows:
                    row, name = (column[0].as_py() for column in found.columns)
                    return unknown_end(row + 1, self._files.shown, end, name, self._nodes.shown)
        raise AssertionError("every end is an id after all")

    def _text_batches(self, end: str, schema: pyarrow.Schema) -> Iterator[pyarrow.RecordBatch]:
        import pyarrow as pa

        done = 0
        for table in self._files.blocks():
            rows = pa.array(np.arange(done, done + table.data.num_rows))
            done += table.data.num_rows
            yield from pa.table([rows, table.text(end)], schema=schema).to_batches()


def _signed(kind: Any) -> bool:
    """Whether a column of this type holds whole numbers that int64 can hold."""
    import pyarrow as pa

    return kind is not None and bool(pa.types.is_integer(kind)) and not pa.types.is_uint64(kind)
