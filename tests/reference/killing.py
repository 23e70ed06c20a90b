"""A command that is killed on its way, again and again, each time at another place, and then left to finish.

``python killing.py FOLDER KILLS SEED ARGUMENT…`` runs the command line in children of this process, which has imported
everything once. A child counts the files below FOLDER that it opens for writing, renames or removes, and dies by
SIGKILL a moment after the one that was drawn; the first is left alone, to count them. It prints what happened as JSON.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import random
import signal
import sys
import threading

WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "shutil.rmtree"}


class Counting:
    """Counts changes below a folder, and kills this process after so many of them."""

    def __init__(self, folder: str, kill_after: int | None, delay: float) -> None:
        self.folder, self.kill_after, self.delay, self.count = folder, kill_after, delay, 0

    def __call__(self, event: str, given: tuple) -> None:
        if not (event in CHANGES or (event == "open" and isinstance(given[2], int) and given[2] & WRITES)):
            return
        with contextlib.suppress(TypeError):
            if not os.fspath(given[0]).startswith(self.folder):
                return
            self.count += 1
            if self.count == self.kill_after:
                threading.Timer(self.delay, os.kill, (os.getpid(), signal.SIGKILL)).start()


def attempt(folder: str, arguments: list[str], kill_after: int | None, delay: float = 0.0) -> tuple[int, int]:
    """How the child ended, as ``waitpid`` says it, and how many changes it counted."""
    here, there = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        counting = Counting(folder, kill_after, delay)
        sys.addaudithook(counting)
        from gcond.cli.app import run

        code = run(arguments)
        atexit._run_exitfuncs()
        os.write(there, str(counting.count).encode())
        os._exit(code or 0)
    os.close(there)
    _, status = os.waitpid(child, 0)
    with os.fdopen(here) as pipe:
        counted = pipe.read()
    return status, int(counted or 0)


def main() -> None:
    folder, kills, seed, *arguments = sys.argv[1:]
    import gcond.cli.app
    import gcond.data.packing
    import gcond.graph.stored_arrays
    import gcond.methods.condense

    gcond.graph.stored_arrays.WORK = 10**9  # a store never fits: it is streamed
    before = sorted(os.listdir(folder))  # noqa: PTH208
    status, total = attempt(folder, arguments, None)
    assert status == 0, status
    print(json.dumps({"total": total, "before": before}), flush=True)
    stream = random.Random(int(seed))
    for _ in range(int(kills)):
        sys.stdin.readline()  # whoever asked has looked at what there is, and put everything back
        at, delay = stream.randint(1, total), stream.choice([0.0, 0.002, 0.02])
        status, _ = attempt(folder, arguments, at, delay)
        print(json.dumps({"killed": os.WIFSIGNALED(status), "at": at, "left": sorted(os.listdir(folder))}), flush=True)  # noqa: PTH208
        sys.stdin.readline()
        status, _ = attempt(folder, arguments, None)
        print(json.dumps({"status": status}), flush=True)


if __name__ == "__main__":
    main()
