"""Threads: how many the work deserves, and that nothing is left changed."""

from __future__ import annotations

import pytest
import torch
from threadpoolctl import threadpool_info

import gcond
from gcond.errors import GcondError
from gcond.runtime import threads
from gcond.runtime.threads import WORK_PER_THREAD, available, deserved, fewer_threads, threads_for


@pytest.fixture
def four(monkeypatch):
    """A machine of four cores and a program that lets torch use three of them."""
    monkeypatch.setattr(threads, "cores", lambda: 4)
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


def blas_threads():
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


@pytest.mark.parametrize(("work", "count"), [(0, 1), (1e6, 1), (2 * WORK_PER_THREAD - 1, 1), (2 * WORK_PER_THREAD, 2)])
def test_small_work_has_one_thread_and_large_work_more(work, count):
    assert deserved(work) == count


@pytest.mark.parametrize(
    ("work", "asked", "count"), [(0, None, 1), (1e99, None, 3), (2 * WORK_PER_THREAD, None, 2), (0, 2, 2), (1e99, 5, 5)]
)
def test_the_number_is_what_is_asked_or_deserved_and_there(four, work, asked, count):
    with threads_for(work, asked) as used:
        assert used == torch.get_num_threads() == count
        assert set(blas_threads()) <= {count}
    assert torch.get_num_threads() == 3


def test_no_more_than_the_cores(four, monkeypatch):
    monkeypatch.setattr(threads, "cores", lambda: 2)
    assert available() == 2
    with threads_for(1e99) as used:
        assert used == 2


def test_everything_is_as_before_even_after_an_error(four):
    libraries = blas_threads()

    def fail():
        with threads_for(0):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert torch.get_num_threads() == 3
    assert blas_threads() == libraries


def test_small_steps_within_large_work_have_fewer(four):
    with threads_for(0, 2):
        with fewer_threads(1):
            assert torch.get_num_threads() == 1
        with fewer_threads(9):
            assert torch.get_num_threads() == 2
        assert torch.get_num_threads() == 2
    assert torch.get_num_threads() == 3


@pytest.mark.parametrize("bad", [0, -1, 1.5, "two", True])
def test_what_is_no_number_of_threads_is_refused(bad, make_graph):
    graph = make_graph()
    with pytest.raises(GcondError, match="threads="), threads_for(0, bad):
        pass
    with pytest.raises(GcondError, match="threads="):
        gcond.condense(graph, method="random", nodes=9, threads=bad)
    with pytest.raises(GcondError, match="threads="):
        gcond.evaluate(graph, runs=1, threads=bad)
    with pytest.raises(GcondError, match="threads="):
        gcond.propagate(graph, hops=1, threads=bad)


@pytest.mark.parametrize(
    ("cgroup", "files", "expected"),
    [
        ("0::/job", {"job/cpu.max": "150000 100000\n"}, [2]),
        ("0::/job", {"job/cpu.max": "max 100000\n"}, []),
        ("0::/host/only", {"cpu.max": "300000 100000\n"}, [3]),
        ("1:cpu,cpuacct:/a", {"cpu/a/cpu.cfs_quota_us": "50000\n", "cpu/a/cpu.cfs_period_us": "100000\n"}, [1]),
        ("1:cpu:/a", {"cpu/a/cpu.cfs_quota_us": "-1\n", "cpu/a/cpu.cfs_period_us": "100000\n"}, []),
        ("4:memory:/a", {"cpu.max": "100000 100000\n"}, []),
        ("0::/a/b", {"a/cpu.max": "400000 100000\n", "a/b/cpu.max": "800000 100000\n"}, [8, 4]),
    ],
)
def test_a_container_gives_so_many_cores(tmp_path, cgroup, files, expected):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    own = tmp_path / "own"
    own.write_text(cgroup + "\n")
    assert list(threads._groups_give(tmp_path, own)) == expected
    assert list(threads._groups_give(tmp_path, tmp_path / "nowhere")) == []


def test_a_program_keeps_its_threads(four, make_graph):
    graph = make_graph()
    for count in (None, 2):
        small = gcond.condense(graph, method="herding", nodes=9, epochs=5, threads=count)
        gcond.evaluate(small, on=graph, runs=1, epochs=3, threads=count)
        gcond.propagate(graph, hops=1, threads=count)
        assert torch.get_num_threads() == 3
        assert small.provenance.threads == (count or 1)


def test_work_has_as_many_as_asked_for_while_it_runs(four, make_graph):
    graph, seen = make_graph(), []

    class Look(gcond.callbacks.Callback):
        def on_step(self, run):
            seen.append(torch.get_num_threads())

    quick = {"epochs": 1, "outer": 2, "inner": 1, "probe_every": 0, "init": "sample"}
    small = gcond.condense(graph, method="gcond", nodes=9, threads=2, callbacks=[Look()], **quick)
    gcond.condense(graph, method="gcond", nodes=9, callbacks=[Look()], **quick)
    with gcond.open_engine("local", workers=1, threads=2) as engine:
        found = gcond.compare(graph, methods="random", nodes=9, seeds=1, runs=1, engine=engine, epochs=2)
    assert seen == [2, 2, 1, 1]
    assert small.provenance.threads == 2
    assert found.lines
    gcond.propagate(graph, hops=1, threads=2, on_block=lambda done, total: seen.append(torch.get_num_threads()))
    gcond.evaluate(graph, runs=1, epochs=2, threads=2, on_progress=lambda *_: seen.append(torch.get_num_threads()))
    assert seen[4] == 2
    assert 2 in seen[5:]


def test_an_engine_has_its_own_threads(make_graph):
    graph = make_graph()
    with gcond.open_engine("local", workers=1) as engine:
        small = gcond.condense(graph, method="random", nodes=9)
        for work in (
            lambda: gcond.evaluate(small, on=graph, engine=engine, threads=2),
            lambda: gcond.compare(graph, nodes=9, engine=engine, threads=2),
            lambda: gcond.search(small, on=graph, engine=engine, threads=2),
        ):
            with pytest.raises(GcondError, match=r"engine has its own threads: give threads=2 to gcond.open_engine"):
                work()


def test_what_propagation_makes_does_not_depend_on_threads(make_graph):
    graph = make_graph(sizes=(400, 300), features=64)
    assert torch.equal(gcond.propagate(graph, hops=3, threads=1), gcond.propagate(graph, hops=3, threads=2))
