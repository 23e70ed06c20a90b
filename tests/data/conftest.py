"""Where the real raw files are, and a world without them and without a network."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

REAL = Path(os.environ["GCOND_DATA"]) if os.environ.get("GCOND_DATA") else None


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real raw files."""
    if REAL is None or not (REAL / "planetoid").is_dir():
        pytest.skip("$GCOND_DATA holds no real data sets")
    return REAL


@pytest.fixture
def offline(monkeypatch, tmp_path) -> Path:
    """No data folder, an empty cache and no network; gives the cache folder."""
    cache = tmp_path / "cache"
    monkeypatch.delenv("GCOND_DATA", raising=False)
    monkeypatch.setenv("GCOND_CACHE", str(cache))
    monkeypatch.setenv("GCOND_OFFLINE", "1")
    return cache
