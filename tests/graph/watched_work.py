"""Work on columns that says where it is done, and waits to be told to go on."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from gcond.graph.column_work import ColumnWork, Operator


@dataclass(frozen=True, eq=False)
class WatchedHops(ColumnWork):
    """Two hops; every try leaves a file in ``folder``, and none goes on before the file ``go`` is there."""

    folder: str

    @property
    def products(self) -> int:
        return 2

    def __call__(self, operator: Operator, columns: Tensor) -> Tensor:
        import ray

        node = ray.get_runtime_context().get_node_id()
        Path(self.folder, f"{node}.{os.getpid()}.{time.monotonic_ns()}").touch()
        while not Path(self.folder, "go").exists():
            time.sleep(0.02)
        for _ in range(2):
            columns = operator @ columns
        return columns
