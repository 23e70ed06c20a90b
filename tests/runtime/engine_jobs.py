"""Jobs for the engines' tests: functions of a module, as real ones are."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from gcond.errors import GcondError


def scale(factor: float, job: float, tell: object = None) -> float:
    return factor * job


def wait_for(folder: Path, job: tuple[str, str], tell: object = None) -> str:
    """Say that ``job[0]`` has begun, and end when ``job[1]`` has."""
    mine, other = job
    (folder / mine).touch()
    while not (folder / other).exists():
        time.sleep(0.01)
    return mine


def misbehave(_: object, job: str, tell: object = None) -> str:
    match job:
        case "refuse":
            raise GcondError("this cannot be: do that")
        case "bug":
            raise ZeroDivisionError("a\nbug")
        case "die":
            os.kill(os.getpid(), signal.SIGKILL)
    return job


def die_once(folder: Path, job: str, tell: object = None) -> str:
    """Killed the first time that ``job`` runs."""
    with open(folder / "log", "a") as log:
        log.write(f"{job}\n")
    if job.startswith("killed") and not (folder / job).exists():
        (folder / job).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return job


def threads(_: object, job: int, tell: object = None) -> int:
    import torch

    return torch.get_num_threads()


def sleep_and_tell(folder: Path, job: str, tell: object = None) -> str:
    """Tell who works on it, then sleep for long, unless the job is to stay awake until another one sleeps."""
    if job == "awake":
        while not ((folder / "asleep").exists() and (folder / "asleep").read_text()):
            time.sleep(0.01)
        return job
    (folder / job).write_text(str(os.getpid()))
    time.sleep(600)
    return job
