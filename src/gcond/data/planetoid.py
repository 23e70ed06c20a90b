"""Cora, CiteSeer and PubMed with their public split (Yang et al., ICML 2016)."""

from __future__ import annotations

import collections
import io
import pickle
from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse
import torch

from gcond.data.load_request import Request
from gcond.data.splits import Split
from gcond.graph import SourceGraph
from gcond.linalg.sparse import SparseMatrix

VALIDATION = 500
"""The public split takes the 500 nodes that follow the training nodes."""

_RECONSTRUCT = np.empty(0).__reduce__()[0]  # numpy moved it between versions; this finds it in all of them
ADMITTED: dict[tuple[str, str], Any] = {
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
    ("numpy.core.multiarray", "_reconstruct"): _RECONSTRUCT,
    ("numpy._core.multiarray", "_reconstruct"): _RECONSTRUCT,
    ("scipy.sparse.csr", "csr_matrix"): scipy.sparse.csr_matrix,
    ("scipy.sparse._csr", "csr_matrix"): scipy.sparse.csr_matrix,
    ("collections", "defaultdict"): collections.defaultdict,
    ("__builtin__", "list"): list,
    ("builtins", "list"): list,
    ("__builtin__", "int"): int,
    ("builtins", "int"): int,
}


class NumbersOnly(pickle.Unpickler):
    """Upstream chose pickles; this admits the handful of types they need and nothing that could run."""

    def find_class(self, module: str, name: str) -> Any:
        try:
            return ADMITTED[module, name]
        except KeyError:
            raise pickle.UnpicklingError(f"{module}.{name} is not allowed here") from None


def load(files: Mapping[str, bytes], request: Request) -> SourceGraph:
    """The graph of one set: ``allx`` first, then the test rows at the ids that ``test.index`` lists.

    It is row-normalised by default. ``files`` are ``ind.NAME.x`` and so on, each checked by its sha256 before.

    CiteSeer lists fewer test ids than it has nodes after ``allx``: the isolated ones in the gaps get
    zero features and class 0, and are in no part of the split.
    """
    contents = {name.split(".", 2)[2]: content for name, content in files.items()}
    parts = {
        part: NumbersOnly(io.BytesIO(content), encoding="latin1").load()
        for part, content in contents.items()
        if part != "test.index"
    }
    test = np.array(contents["test.index"].split(), dtype=np.int64)
    known, train = parts["allx"].shape[0], len(parts["y"])
    nodes = int(test.max()) + 1

    # Node i < known is row i of allx, node test[r] is row r of tx, and a node in a gap has no row.
    origin = np.full(nodes, -1)
    origin[:known] = np.arange(known)
    origin[test] = known + np.arange(len(test))
    present = origin >= 0
    x = scipy.sparse.vstack([_csr(parts["allx"]), _csr(parts["tx"])], format="csr", dtype=np.float32)
    selector = scipy.sparse.csr_matrix(
        (np.ones(present.sum(), np.float32), (present.nonzero()[0], origin[present])), shape=(nodes, x.shape[0])
    )
    classes = np.concatenate([parts["ally"], parts["ty"]]).argmax(1)
    y = np.where(present, classes[origin], 0)

    adjacency: Mapping[int, list[int]] = parts["graph"]
    lengths = [len(neighbours) for neighbours in adjacency.values()]
    source = np.repeat(np.fromiter(adjacency, np.int64, len(adjacency)), lengths)
    target = np.fromiter((node for neighbours in adjacency.values() for node in neighbours), np.int64, sum(lengths))
    val = torch.arange(train, train + VALIDATION)
    return request.build(
        Split(torch.arange(train), val, torch.from_numpy(test), "the split is the public one"),
        usual="row-normalise",
        x=SparseMatrix.from_scipy(selector @ x),
        edge_index=torch.from_numpy(np.stack([source, target])),
        y=torch.from_numpy(y),
        listed_edges=len(target) // 2,  # both ends list an edge; papers count these, repeats and self-loops included
    )


def _csr(matrix: scipy.sparse.csr_matrix) -> scipy.sparse.csr_matrix:
    """Built afresh: a matrix unpickled from an old SciPy lacks attributes of the current one."""
    return scipy.sparse.csr_matrix((matrix.data, matrix.indices, matrix.indptr), shape=matrix.shape)
