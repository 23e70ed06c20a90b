"""Devices by name."""

from __future__ import annotations

import pytest
import torch

from gcond.errors import GcondError
from gcond.runtime.device import check_device, choose_device
from gcond.runtime.threads import use_threads


def test_auto_takes_a_gpu_if_there_is_one(monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert choose_device() == torch.device("cpu")
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    assert choose_device("auto") == torch.device("cuda")


def test_a_gpu_by_number(monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    assert choose_device("cuda:1") == torch.device("cuda", 1)
    with pytest.raises(GcondError, match="the last is cuda:1"):
        choose_device("cuda:2")


def test_a_gpu_that_is_not_there(monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(GcondError, match="finds no CUDA device"):
        choose_device("cuda")
    with pytest.raises(GcondError, match="finds no CUDA device"):
        check_device("cuda:0")
    check_device("cpu:0")
    assert choose_device("cpu:0") == torch.device("cpu")


@pytest.mark.parametrize(
    "name",
    ["gpu", "", "CPU", "cuda:", "cuda:x", "cuda:-1", "cpu:", "mps", "meta", "cuda:²", "cuda:" + "9" * 5000, "cpu\n"],
)
def test_other_names_are_refused(name):
    with pytest.raises(GcondError, match="choose auto, cpu or cuda:0"):
        check_device(name)
    with pytest.raises(GcondError, match="choose auto, cpu or cuda:0"):
        choose_device(name)


def test_threads(monkeypatch):
    seen = []
    monkeypatch.setattr("torch.set_num_threads", seen.append)
    use_threads(None)
    use_threads(3)
    assert seen == [3]
    with pytest.raises(GcondError, match="1 or more"):
        use_threads(0)
