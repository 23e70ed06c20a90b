"""Randomness is an argument: generators made from a seed and a purpose, never a global state."""

from __future__ import annotations

import hashlib

import torch


def generator(seed: int, purpose: str, device: torch.device | str = "cpu") -> torch.Generator:
    """A generator for one ``purpose``: the same seed gives unrelated numbers for different purposes."""
    digest = hashlib.sha256(f"{seed}/{purpose}".encode()).digest()
    stream = torch.Generator(device=device)
    stream.manual_seed(int.from_bytes(digest[:7], "little"))
    return stream
