"""Both engines keep the same promises; Ray is a real one on this machine."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import pytest

from gcond.errors import GcondError
from gcond.runtime.engines import Engine, open_engine
from gcond.runtime.engines.engine import MOST_TRIES, divide
from runtime import engine_jobs as jobs

PATHS = os.pathsep.join([str(Path(__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])])


@pytest.fixture(scope="module", params=["in process", "local", pytest.param("ray", marks=pytest.mark.slow)])
def engine(request):
    name = "ray" if request.param == "ray" else "local"
    with _importable(), open_engine(name, workers=1 if request.param == "in process" else 2, threads=2) as engine:
        yield engine


@pytest.fixture(scope="module", params=["local", "ray"])
def processes(request):
    """Engines whose jobs are other processes."""
    with _importable(), open_engine(request.param, workers=2, threads=2) as engine:
        yield engine


def results(engine: Engine, function, shared, jobs):
    outcomes = list(engine.map(function, shared, jobs))
    assert len(outcomes) == len(jobs)
    return {outcome.job: outcome.result for outcome in outcomes}, {o.job: o.error for o in outcomes if o.error}


def test_every_job_is_done_once(engine):
    found, errors = results(engine, jobs.scale, 3.0, list(range(20)))
    assert found == {job: 3.0 * job for job in range(20)}
    assert not errors


def test_an_engine_serves_one_map_after_the_other(engine):
    assert results(engine, jobs.scale, 2.0, [1, 2, 3])[0] == {1: 2.0, 2: 4.0, 3: 6.0}
    assert results(engine, jobs.scale, 5.0, [1, 2, 3])[0] == {1: 5.0, 2: 10.0, 3: 15.0}


def test_no_job_is_no_work(engine):
    assert list(engine.map(jobs.scale, 1.0, [])) == []


def test_a_job_that_fails_does_not_sink_the_others(engine):
    found, errors = results(engine, jobs.misbehave, None, ["a", "refuse", "bug", "b"])
    assert found == {"a": "a", "refuse": None, "bug": None, "b": "b"}
    assert errors == {"refuse": "this cannot be: do that", "bug": "ZeroDivisionError: a bug"}


@pytest.mark.slow
def test_jobs_run_side_by_side(processes, tmp_path):
    found, _ = results(processes, jobs.wait_for, tmp_path, [("a", "b"), ("b", "a")])
    assert found == {("a", "b"): "a", ("b", "a"): "b"}


@pytest.mark.slow
def test_a_job_whose_worker_is_killed_is_done_again(processes, tmp_path):
    found, errors = results(processes, jobs.die_once, tmp_path, ["a", "killed 1", "b", "killed 2", "c"])
    assert set(found.values()) == {"a", "b", "c", "killed 1", "killed 2"}
    assert not errors
    ran = Counter((tmp_path / "log").read_text().split("\n"))
    assert ran["killed 1"] == ran["killed 2"] == 2
    assert ran["a"] == ran["b"] == ran["c"] == 1


@pytest.mark.slow
def test_a_job_that_always_kills_its_worker_is_given_up(processes):
    found, errors = results(processes, jobs.misbehave, None, ["a", "die", "b"])
    assert found == {"a": "a", "die": None, "b": "b"}
    assert f"{MOST_TRIES} times" in errors["die"]


@pytest.mark.slow
def test_threads_are_divided(processes):
    assert set(results(processes, jobs.threads, None, [0, 1, 2])[0].values()) == {1}


@pytest.mark.parametrize(
    ("workers", "threads", "cores", "expected"),
    [
        (None, None, 8, (8, 1)),
        (2, None, 8, (2, 4)),
        (None, 4, 8, (4, 1)),
        (3, 4, 8, (3, 1)),
        (4, 1, 8, (4, 1)),
        (None, 16, 8, (8, 2)),
    ],
)
def test_how_threads_are_divided(workers, threads, cores, expected):
    assert divide(workers, threads, cores) == expected


@pytest.mark.slow
def test_workers_end_with_a_killed_parent(tmp_path):
    """Nothing goes on computing for a process that is gone."""
    code = (
        "import sys; from pathlib import Path; from runtime import engine_jobs as jobs\n"
        "from gcond.runtime.engines import open_engine\n"
        "if __name__ == '__main__':\n"
        "    list(open_engine('local', workers=2).map(jobs.sleep_and_tell, Path(sys.argv[1]), ['a', 'b']))\n"
    )
    script = tmp_path / "script.py"
    script.write_text(code)
    environment = {**os.environ, "PYTHONPATH": PATHS}
    parent = subprocess.Popen([sys.executable, str(script), str(tmp_path)], env=environment)
    told = [tmp_path / "a", tmp_path / "b"]
    _until(lambda: all(place.exists() and place.read_text() for place in told))
    parent.kill()
    parent.wait()
    _until(lambda: not any(Path(f"/proc/{place.read_text()}").exists() for place in told))


@pytest.mark.slow
def test_leaving_early_ends_what_still_runs(tmp_path):
    with open_engine("local", workers=2) as engine:
        outcomes = engine.map(jobs.sleep_and_tell, tmp_path, ["awake", "asleep"])
        assert next(outcomes).result == "awake"
        outcomes.close()
        assert not Path(f"/proc/{(tmp_path / 'asleep').read_text()}").exists()
        assert results(engine, jobs.scale, 2.0, [1, 2])[0] == {1: 2.0, 2: 4.0}


def test_an_engine_that_is_not_there_is_refused():
    with pytest.raises(GcondError, match="choose local or ray"):
        open_engine("spark")
    with pytest.raises(GcondError, match="engine='ray'"):
        open_engine("local", address="localhost:1")
    with pytest.raises(GcondError, match="workers=0"):
        open_engine("local", workers=0)


@contextmanager
def _importable():
    """Ray starts its workers with this process's environment; they import the jobs from here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", PATHS)
        yield


def _until(condition):
    for _ in range(6000):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("it never came true")


@pytest.mark.slow
def test_a_script_without_a_guard_is_told_so(tmp_path):
    """Its workers read it again, and would start workers of their own."""
    script = tmp_path / "script.py"
    script.write_text(
        "from runtime import engine_jobs as jobs\n"
        "from gcond.runtime.engines import open_engine\n"
        "print(list(open_engine('local', workers=2).map(jobs.scale, 2.0, [1.0, 2.0])))\n"
    )
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": PATHS}
    )
    assert done.returncode == 1
    assert "__main__" in done.stderr.splitlines()[-1]
    assert "GcondError" in done.stderr.splitlines()[-1]
