"""Memory that is left: the machine's, and what control groups allow."""

from __future__ import annotations

import subprocess
import sys

import pytest

from gcond.runtime import memory as resources

FILES = {
    2: ("", "memory.max", "memory.current", "inactive_file"),
    1: ("memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
}


def left(tmp_path, lines):
    (tmp_path / "own").write_text("".join(f"{line}\n" for line in lines))
    return list(resources._groups_have_left(tmp_path, tmp_path / "own"))


def group(tmp_path, version, path, limit, used, *, cache=0):
    folder, *names, cached = FILES[version]
    place = tmp_path / folder / path
    place.mkdir(parents=True, exist_ok=True)
    for name, value in zip(names, (limit, used), strict=True):
        (place / name).write_text(f"{value}\n")
    (place / "memory.stat").write_text(f"anon 5\nactive_file 7\n{cached} {cache}\n")


@pytest.mark.parametrize(("version", "line"), [(2, "0::/jobs/mine"), (1, "4:cpu,memory:/jobs/mine")])
def test_limits_of_the_own_group_and_of_those_around_it(tmp_path, version, line):
    group(tmp_path, version, "jobs/mine", 1000, 300, cache=50)
    group(tmp_path, version, "jobs", 5000, 4900)
    group(tmp_path, version, "jobs/others", 10, 0)
    assert sorted(left(tmp_path, ["9:cpuset:/", line])) == [100, 750]


@pytest.mark.parametrize(("version", "line"), [(2, "0::/of/the/host"), (1, "4:memory:/of/the/host")])
def test_inside_a_container_the_group_is_at_the_root(tmp_path, version, line):
    group(tmp_path, version, ".", 1000, 300)
    assert left(tmp_path, [line]) == [700]


def test_a_group_that_is_full_has_nothing_left(tmp_path):
    group(tmp_path, 2, ".", 1000, 1200)
    assert left(tmp_path, ["0::/"]) == [0]


def test_no_limit_and_nothing_to_read(tmp_path):
    group(tmp_path, 2, ".", "max", 300)
    assert left(tmp_path, ["0::/", "3:memory:/", "odd"]) == []
    assert list(resources._groups_have_left(tmp_path, tmp_path / "absent")) == []


def test_the_tightest_limit_counts(monkeypatch):
    monkeypatch.setattr(resources, "_machine_has_left", lambda: 500)
    for groups, expected in (([], 500), ([900, 200], 200), ([900], 500)):
        monkeypatch.setattr(resources, "_groups_have_left", lambda groups=groups: iter(groups))
        assert resources.available_bytes() == expected


def test_this_machine_has_some():
    assert resources.available_bytes() > 0


@pytest.mark.skipif(sys.platform != "linux", reason="mallopt is glibc's own")
def test_large_tensors_are_the_system_s_again_once_they_are_freed():
    lines = """
import sys
import torch
from gcond.runtime.memory import map_large_tensors, reuse_memory
def held():
    return int(open("/proc/self/statm").read().split()[1]) * 4096
reuse_memory()
if sys.argv[1] == "mapped":
    map_large_tensors()
before = held()
large, last = torch.ones(16_000_000), torch.ones(1000)
del large
print(held() - before)
"""
    kept, mapped = (
        int(subprocess.run([sys.executable, "-c", lines, how], check=True, capture_output=True, text=True).stdout)
        for how in ("kept", "mapped")
    )
    assert mapped < 32_000_000 < kept
