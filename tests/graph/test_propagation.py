"""Propagation against SciPy, the same numbers in every mode, and the memory that it promises."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap

import numpy as np
import pytest
import scipy.sparse
import torch
from hypothesis import given
from hypothesis import strategies as st

import gcond
from conftest import random_graph
from gcond.errors import GcondError
from gcond.graph import propagation
from gcond.graph.propagation import propagate
from gcond.linalg.sparse import SparseMatrix
from gcond.runtime.memory import held_bytes


def expected(adjacency, x, hops):
    """Â^hops X in float64 by SciPy alone, straight from the definition."""
    loops = scipy.sparse.csr_matrix(adjacency, dtype=np.float64) + scipy.sparse.identity(adjacency.shape[0])
    scale = scipy.sparse.diags(np.asarray(loops.sum(1)).ravel() ** -0.5)
    for _ in range(hops):
        x = scale @ loops @ scale @ x
    return np.asarray(x, dtype=np.float64)


def random_adjacency(n, density=0.1, *, symmetric=True, seed=0):
    matrix = scipy.sparse.random(n, n, density, format="csr", dtype=np.float32, rng=np.random.default_rng(seed))
    return matrix.maximum(matrix.T).tocsr() if symmetric else matrix


def random_features(n, d, seed=0):
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed))


def make_room_for(monkeypatch, columns):
    """Let just ``columns`` columns in at a time."""
    monkeypatch.setattr(propagation._Need, "columns_within", lambda need, limit, d: min(columns, d))


@given(
    n=st.integers(1, 12),
    d=st.integers(1, 5),
    hops=st.integers(0, 3),
    density=st.floats(0, 1),
    symmetric=st.booleans(),
    seed=st.integers(0, 10**6),
)
def test_equals_scipy_on_any_graph(*, n, d, hops, density, symmetric, seed):
    matrix, x = random_adjacency(n, density, symmetric=symmetric, seed=seed), random_features(n, d, seed)
    result = propagate(SparseMatrix.from_scipy(matrix, symmetric=symmetric), x, hops=hops)
    assert result.dtype == torch.float32
    np.testing.assert_allclose(result, expected(matrix, x.numpy(), hops), rtol=1e-5, atol=1e-5)


def test_a_path_of_three_nodes_by_hand():
    path = SparseMatrix.from_scipy(
        scipy.sparse.csr_matrix(np.float32([[0, 1, 0], [1, 0, 1], [0, 1, 0]])), symmetric=True
    )
    a, b = 1 / 2, 1 / 6**0.5
    by_hand = torch.tensor([[a, b, 0], [b, 1 / 3, b], [0, b, a]])
    torch.testing.assert_close(propagate(path, torch.eye(3), hops=1), by_hand)


@pytest.mark.parametrize("hops", [0, 1, 3])
@pytest.mark.parametrize("options", [{}, {"weighted": True}, {"directed": True}, {"density": 0.05}])
def test_source_graphs(hops, options):
    graph = random_graph(**options)
    assert isinstance(graph.x, SparseMatrix) == ("density" in options)
    x = graph.x.to_dense() if isinstance(graph.x, SparseMatrix) else graph.x
    result = propagate(graph, hops=hops)
    np.testing.assert_allclose(result, expected(graph.adjacency.to_scipy(), x.numpy(), hops), rtol=1e-5, atol=1e-6)


def test_isolated_nodes_keep_their_features():
    matrix = random_adjacency(30).tolil()
    matrix[7], matrix[:, 7] = 0, 0
    x = random_features(30, 4)
    result = propagate(SparseMatrix.from_scipy(matrix.tocsr(), symmetric=True), x, hops=3)
    assert torch.equal(result[7], x[7])


@pytest.mark.parametrize("columns", [1, 3, 16, 37])
@pytest.mark.parametrize("form", ["tensor", "transposed", "sparse", "array", "row-major map", "column-major map"])
def test_blocks_give_the_same_bits(columns, form, monkeypatch, tmp_path):
    """The kernel adds up each column in the order of the row's entries, however many columns are beside it."""
    n, d = 500, 37
    adjacency, x = SparseMatrix.from_scipy(random_adjacency(n), symmetric=True), random_features(n, d)
    x[x < 0.5] = 0
    whole = propagate(adjacency, x, hops=2)
    np.save(tmp_path / "x.npy", x.numpy() if form != "column-major map" else np.asfortranarray(x.numpy()))
    given_x = {
        "tensor": x,
        "transposed": x.T.contiguous().T,
        "sparse": SparseMatrix.from_scipy(scipy.sparse.csr_matrix(x.numpy())),
        "array": x.numpy(),
    }.get(form)
    given_x = np.load(tmp_path / "x.npy", mmap_mode="r") if given_x is None else given_x
    monkeypatch.setattr(propagation, "PIECE", 5000)  # 33 rows of X, so that a map is read in many pieces
    make_room_for(monkeypatch, columns)
    calls = []
    result = propagate(
        adjacency, given_x, hops=2, out=tmp_path / "h.npy", on_block=lambda done, total: calls.append((done, total))
    )
    assert torch.equal(result, whole)
    total = -(-d // columns)
    assert calls == [(done, total) for done in range(1, total + 1)]


def test_out_is_a_column_major_npy_and_its_map_is_private(tmp_path):
    graph = random_graph()
    out = tmp_path / "h.npy"
    out.write_text("an older file")
    result = propagate(graph, hops=2, out=out)
    plain = propagate(graph, hops=2)
    stored = np.load(out)
    assert stored.dtype == np.float32
    assert stored.flags.f_contiguous
    assert np.array_equal(stored, plain.numpy())
    assert torch.equal(result, plain)
    result.zero_()
    assert np.array_equal(np.load(out), plain.numpy())
    assert list(tmp_path.iterdir()) == [out]
    assert plain.is_contiguous()


def test_double_precision_adjacency_gives_double_precision(tmp_path):
    matrix, x = random_adjacency(40).astype(np.float64), random_features(40, 3)
    result = propagate(SparseMatrix.from_scipy(matrix), x.half(), hops=2, out=tmp_path / "h.npy")
    assert result.dtype == torch.float64
    np.testing.assert_allclose(result, expected(matrix, x.half().double().numpy(), 2), rtol=1e-12)


def test_without_room_and_without_out_the_file_is_nameless(monkeypatch, tmp_path):
    graph = random_graph()
    whole = propagate(graph, hops=2)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    make_room_for(monkeypatch, 5)
    result = propagate(graph, hops=2)
    assert list(tmp_path.iterdir()) == []
    assert result.stride() == (1, graph.num_nodes)
    assert torch.equal(result, whole)


def test_the_result_shares_nothing_with_the_input():
    graph = random_graph()
    before = graph.x.clone()
    propagate(graph, hops=0).zero_()
    assert torch.equal(graph.x, before)


def test_no_gradient_goes_through():
    graph = random_graph()
    x = graph.x.clone().requires_grad_()
    assert not propagate(graph.adjacency, x, hops=2).requires_grad


def test_a_private_map_keeps_its_changes(tmp_path):
    """Letting go of a copy-on-write page would lose what was written to it."""
    graph = random_graph()
    np.save(tmp_path / "x.npy", graph.x.numpy())
    changed = np.load(tmp_path / "x.npy", mmap_mode="c")
    changed[:] = 1
    result = propagate(graph.adjacency, changed, hops=1)
    assert (changed == 1).all()
    assert torch.equal(result, propagate(graph.adjacency, torch.ones_like(graph.x), hops=1))


def test_a_part_of_a_map_is_read_from_where_it_starts(tmp_path):
    graph = random_graph()
    x = graph.x.numpy()
    np.save(tmp_path / "x.npy", np.concatenate([np.full_like(x, 7), x]))
    part = np.load(tmp_path / "x.npy", mmap_mode="r")[len(x) :]
    assert torch.equal(propagate(graph.adjacency, part, hops=2), propagate(graph, hops=2))


@pytest.mark.parametrize("moment", ["callback", "disk"])
def test_an_interrupted_write_leaves_the_old_file_and_no_debris(moment, monkeypatch, tmp_path):
    graph = random_graph()
    out = tmp_path / "h.npy"
    out.write_text("before")
    make_room_for(monkeypatch, 4)

    def stop(done, total):
        if done == 2:
            raise KeyboardInterrupt if moment == "callback" else OSError(28, "No space left on device")

    with pytest.raises(KeyboardInterrupt if moment == "callback" else GcondError):
        propagate(graph, hops=2, out=out, on_block=stop)
    assert out.read_text() == "before"
    assert list(tmp_path.iterdir()) == [out]


def test_a_full_disk_is_noticed_before_the_work(monkeypatch, tmp_path):
    graph = random_graph()
    size = graph.num_nodes * graph.num_features * 4
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda place: usage._replace(free=size - 1))
    blocks = []
    with pytest.raises(GcondError, match=re.escape(f"the disk of '{tmp_path}' has 0 MB free")):
        propagate(graph, hops=1, out=tmp_path / "h.npy", on_block=lambda *done: blocks.append(done))
    assert blocks == []
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr(shutil, "disk_usage", lambda place: usage._replace(free=10**6))
    propagate(graph, hops=1, out=tmp_path / "h.npy")


def test_the_least_limit_that_is_named_is_enough_and_less_is_not(tmp_path):
    n, d = 200_000, 20
    edges = scipy.sparse.csr_matrix(([1.0], ([0], [1])), shape=(n, n), dtype=np.float32)
    adjacency, x = SparseMatrix.from_scipy(edges), torch.ones(n, d)
    with pytest.raises(GcondError, match="too small for 200000 nodes") as refusal:
        propagate(adjacency, x, hops=1, memory_limit="1MB", out=tmp_path / "h.npy")
    assert list(tmp_path.iterdir()) == []
    least = re.search(r"use memory_limit='(\d+MB)' or more", str(refusal.value))[1]
    totals = []
    propagate(
        adjacency, x, hops=1, memory_limit=least, out=tmp_path / "h.npy", on_block=lambda _, total: totals.append(total)
    )
    assert len(totals) > 1
    with pytest.raises(GcondError, match="too small"):
        propagate(adjacency, x, hops=1, memory_limit=int(least[:-2]) * 10**6 - 10**7)


@given(
    held=st.integers(0, 10**9),
    extra=st.integers(0, 10**9),
    d=st.integers(1, 3000),
    hops=st.integers(0, 2),
)
def test_the_block_is_as_wide_as_the_formula_allows(held, extra, d, hops):
    adjacency = SparseMatrix.from_scipy(scipy.sparse.identity(5000, dtype=np.float32, format="csr"))
    need = propagation._Need(held, adjacency, hops)
    limit = need.bytes_for(1) + extra
    width = need.columns_within(limit, d)
    assert 1 <= width <= d
    assert need.bytes_for(width) <= limit
    if width < d:
        step = 1 if width < propagation.VECTOR else propagation.VECTOR
        assert need.bytes_for(min(width + step, d)) > limit


def test_the_formula_in_numbers():
    """nnz = 1000 and n = 500, so e = 1500: 24 e to normalise, or 8 e and twelve bytes a node and column."""
    matrix = scipy.sparse.csr_matrix(
        (np.ones(1000, np.float32), (np.arange(1000) // 2, np.arange(1000) % 500)), shape=(500, 500)
    )
    need = propagation._Need(10**8, SparseMatrix.from_scipy(matrix), 2)
    assert need.bytes_for(1) == 10**8 + 24 * 1500 + 24 * 10**6
    assert need.bytes_for(64) == 10**8 + 8 * 1500 + 12 * 500 * 64 + 24 * 10**6


def test_the_limit_counts_what_the_process_already_holds():
    graph = random_graph()
    limit = held_bytes() + 60 * 10**6
    propagate(graph, hops=2, memory_limit=limit)
    ballast = np.ones(100 * 10**6, dtype=np.uint8)
    with pytest.raises(GcondError, match="already holds"):
        propagate(graph, hops=2, memory_limit=limit)
    del ballast
    propagate(graph, hops=2, memory_limit=limit)


@pytest.mark.parametrize("limit", ["much", "5 parsecs", "", -1, "1e9 GB"])
def test_limits_that_are_no_size(limit):
    with pytest.raises(GcondError, match="is not a size"):
        propagate(random_graph(), hops=1, memory_limit=limit)


@pytest.mark.parametrize("limit", ["2GB", "2 GiB", "2000 mb", 2 * 10**9])
def test_limits_that_are(limit):
    assert torch.equal(propagate(random_graph(), hops=1, memory_limit=limit), propagate(random_graph(), hops=1))


@pytest.mark.parametrize("hops", [-1, 1.5, "2", True, None])
def test_hops_must_count(hops):
    with pytest.raises(GcondError, match="whole number, 0 or more"):
        propagate(random_graph(), hops=hops)


def test_refusals_name_what_is_wrong(tmp_path):
    graph = random_graph()
    adjacency, n = graph.adjacency, graph.num_nodes
    wide = SparseMatrix.from_scipy(scipy.sparse.csr_matrix(np.ones((2, 3), np.float32)))
    for arguments, message in [
        ((graph, graph.x), "brings its own features"),
        ((adjacency,), "nothing to propagate"),
        ((graph.x, graph.x), "a Tensor cannot be propagated over"),
        ((adjacency, [[1.0]]), "features of type list"),
        ((wide, torch.ones(2, 1)), re.escape("shape [2, 3]: it must be square")),
        ((adjacency, torch.ones(n)), f"there are {n} nodes"),
        ((adjacency, torch.ones(n + 1, 2)), f"there are {n} nodes"),
    ]:
        with pytest.raises(GcondError, match=message):
            propagate(*arguments, hops=1)
    with pytest.raises(GcondError, match="does not exist"):
        propagate(graph, hops=1, out=tmp_path / "nowhere" / "h.npy")
    with pytest.raises(GcondError, match="it is a folder"):
        propagate(graph, hops=1, out=tmp_path)


@pytest.mark.slow
def test_a_large_map_is_propagated_in_less_memory_than_it_has(tmp_path):
    """A map of 80 MB in blocks of growing width; the peak never goes down, so limits only go up."""
    runs = run_fresh(
        """
        import numpy as np, scipy.sparse
        from gcond.linalg.sparse import SparseMatrix
        from gcond.runtime.memory import held_bytes, peak_rss_mb
        n, d = 80_000, 250
        with open(f"{folder}/x.npy", "wb") as file:
            header = {"descr": "<f4", "fortran_order": False, "shape": (n, d)}
            np.lib.format.write_array_header_1_0(file, header)
            for start in range(0, n, 10_000):
                file.write(np.full((10_000, d), start, np.float32).data)
        ring = scipy.sparse.csr_matrix((np.ones(n, np.float32), (np.arange(n), np.roll(np.arange(n), 1))), shape=(n, n))
        adjacency = SparseMatrix.from_scipy(ring.maximum(ring.T), symmetric=True)
        x = np.load(f"{folder}/x.npy", mmap_mode="r")
        result = []
        for extra in (50, 65, 78):
            limit, blocks = held_bytes() + extra * 10**6, []
            gcond.propagate(adjacency, x, hops=1, memory_limit=limit, out=f"{folder}/h.npy",
                            on_block=lambda _, total: blocks.append(total))
            result.append({"peak": peak_rss_mb(), "limit": limit / 10**6, "blocks": blocks[0]})
        """,
        tmp_path,
    )
    assert all(run["peak"] < run["limit"] for run in runs), runs
    blocks = [run["blocks"] for run in runs]
    assert blocks == sorted(blocks, reverse=True)
    assert blocks[-1] > 1
    # node 40000 averages itself and its neighbours 39999 and 40001, which hold 40000, 30000 and 40000
    row = np.load(tmp_path / "h.npy", mmap_mode="r")[40_000]
    np.testing.assert_allclose(row, (30_000 + 40_000 + 40_000) / 3, rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(("limit", "bound"), [(None, 2000), ("500MB", 500)])
def test_the_memory_of_a_whole_process_on_a_graph_of_arxivs_size(limit, bound, tmp_path):
    """Load, propagate twice, save: peak resident memory in MB, PyTorch (about 235) and X (87) in it."""
    done = run_fresh(
        f"""
        from gcond.runtime.memory import peak_rss_mb
        graph = gcond.load("synthetic:arxiv")
        loaded, blocks = peak_rss_mb(), []
        gcond.propagate(graph, hops=2, memory_limit={limit!r}, out=f"{{folder}}/h.npy",
                        on_block=lambda _, total: blocks.append(total))
        result = {{"nodes": graph.num_nodes, "loaded": loaded, "peak": peak_rss_mb(), "blocks": blocks[0]}}
        """,
        tmp_path,
    )
    assert done["nodes"] == 169_343
    assert done["peak"] < bound, f"loading alone peaked at {done['loaded']:.0f} MB"
    assert (done["blocks"] > 1) == (limit is not None)
    stored = np.load(tmp_path / "h.npy", mmap_mode="r")
    assert stored.shape == (169_343, 128)
    assert np.isfinite(stored[:, ::16]).all()


def run_fresh(code, folder):
    """Run ``code`` in a process of its own, where peaks start at nothing; it leaves plain data in ``result``."""
    script = "import json, sys, torch, gcond\ntorch.set_num_threads(1)\nfolder = sys.argv[1]\n"
    script += textwrap.dedent(code) + "\nprint(json.dumps(result))\n"
    done = subprocess.run([sys.executable, "-c", script, str(folder)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_it_is_exported():
    assert gcond.propagate is propagate


def test_what_is_free_on_the_gpu_counts_where_the_blocks_are_there(monkeypatch):
    adjacency = SparseMatrix.from_scipy(scipy.sparse.eye(3, format="csr", dtype=np.float32))
    monkeypatch.setattr(propagation, "available_bytes", lambda: 1000)
    monkeypatch.setattr("torch.cuda.mem_get_info", lambda device: (300, 800))
    assert propagation._free_bytes(adjacency) == 1000
    monkeypatch.setattr(SparseMatrix, "device", torch.device("cuda"))
    assert propagation._free_bytes(adjacency) == 300
