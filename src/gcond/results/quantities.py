"""The kinds of numbers that results are made of: a file that holds another is damaged, and refused."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, FiniteFloat

Count = Annotated[int, Field(ge=0, lt=2**63)]
Amount = Annotated[FiniteFloat, Field(ge=0)]
"""Bytes, megabytes, deviations."""
CpuSeconds = Annotated[FiniteFloat, Field(ge=0)]
"""Processor time: what else a machine does meanwhile does not count."""
Accuracy = Annotated[float, Field(ge=0, le=1)]
"""A fraction."""

Plain = str | bool | int | float | None
SettingValue = Plain | list[Plain]
"""A setting as JSON has it."""
