"""Wall and CPU time of work that may be interrupted."""

from __future__ import annotations

import time


class Stopwatch:
    """Wall and CPU seconds since it was made, and those before the work was interrupted."""

    def __init__(self) -> None:
        self.earlier = (0.0, 0.0)
        self._began = (time.perf_counter(), time.process_time())

    def spent(self) -> tuple[float, float]:
        """Wall and CPU seconds of all of it so far."""
        wall, cpu = self._began
        return self.earlier[0] + time.perf_counter() - wall, self.earlier[1] + time.process_time() - cpu
