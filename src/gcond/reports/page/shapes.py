"""What a run folder holds, as types: a page may be made of files that anyone wrote, so they are checked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal, NotRequired, TypeVar

from pydantic import ConfigDict, Field, FiniteFloat, TypeAdapter, ValidationError, with_config
from typing_extensions import TypedDict

from gcond.errors import GcondError

Count = Annotated[int, Field(ge=0, lt=2**63)]
Amount = Annotated[FiniteFloat, Field(ge=0)]
Share = Annotated[FiniteFloat, Field(ge=0, le=1)]


Plain = str | bool | int | float | None
Setting = Plain | list[Plain]


class Named(TypedDict):
    """What has a name; an empty one where it is not known."""

    name: str


@with_config(ConfigDict(extra="ignore"))
class Source(Named, total=False):
    """The graph that was condensed."""

    sha256: str
    setting: str
    nodes: Count
    edges: Count
    features: Count
    classes: Count
    class_names: list[str] | None
    class_nodes: list[Count] | None
    bytes: Count


@with_config(ConfigDict(extra="ignore"))
class Line(TypedDict):
    """One method at one budget, tested with one model: a row of the comparison."""

    method: str
    kind: str
    model: str
    nodes: Count
    edges: Amount
    bytes: Amount
    mean: Share
    std: Amount
    n: Count
    ratio: FiniteFloat
    kept: NotRequired[Amount | None]
    condense_seconds: NotRequired[Amount | None]
    train_seconds: NotRequired[Amount | None]
    peak_rss_mb: NotRequired[Amount | None]
    break_even: NotRequired[Amount | None]
    mark: NotRequired[str]
    p_value: NotRequired[FiniteFloat | None]
    graphs: NotRequired[list[str]]
    changes: NotRequired[dict[str, Setting]]
    """Settings in which the training or the model was not the usual one."""


@with_config(ConfigDict(extra="ignore"))
class Failure(TypedDict):
    """What could not be done, and why."""

    what: str
    error: str


@with_config(ConfigDict(extra="ignore"))
class Comparison(TypedDict):
    """comparison.json."""

    source: Source
    lines: list[Line]
    kind: NotRequired[Literal["comparison"]]
    recipe: NotRequired[dict[str, Setting]]
    gcond: NotRequired[str]
    command: NotRequired[str]
    models: NotRequired[list[str]]
    seeds: NotRequired[Count]
    runs: NotRequired[Count]
    advice: NotRequired[list[str]]
    failures: NotRequired[list[Failure]]


@with_config(ConfigDict(extra="ignore"))
class Winner(TypedDict):
    """The architecture that a search chose, and what it reaches when it is trained on the whole graph."""

    settings: dict[str, Setting]
    mean: Share
    std: Amount
    n: Count


@with_config(ConfigDict(extra="ignore"))
class Architecture(TypedDict):
    """One architecture of the search; ``whole`` is missing where only the condensed graph was searched."""

    settings: dict[str, Setting]
    condensed: Share
    whole: NotRequired[Share | None]
    condensed_seconds: NotRequired[Amount | None]
    whole_seconds: NotRequired[Amount | None]


@with_config(ConfigDict(extra="ignore"))
class Condensed(TypedDict, total=False):
    """The graph that was searched on."""

    method: str | None
    nodes: Count


@with_config(ConfigDict(extra="ignore"))
class Search(TypedDict):
    """nas.json."""

    model: str
    architectures: list[Architecture]
    source: Source
    kind: NotRequired[Literal["nas"]]
    grid: NotRequired[dict[str, list[Setting]]]
    condensed: NotRequired[Condensed]
    command: NotRequired[str]
    pearson: NotRequired[FiniteFloat | None]
    spearman: NotRequired[FiniteFloat | None]
    winners: NotRequired[dict[str, Winner | None]]
    seconds: NotRequired[dict[str, Amount | None]]
    failures: NotRequired[list[Failure]]


T = TypeVar("T", Comparison, Search)


def read_json(path: Path, shape: type[T]) -> T:
    """The contents of ``path``, checked: figures and words may rely on every field of ``shape`` that is required."""
    try:
        return TypeAdapter(shape).validate_python(json.loads(path.read_text(encoding="utf-8")))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the whole"
        reason = f"{where}: {first['msg'][:1].lower()}{first['msg'][1:]}"
    except OSError as error:
        reason = error.strerror or str(error)
    except (ValueError, RecursionError):
        reason = "it is not JSON"
    raise GcondError(f"'{path}' cannot be read ({reason}): let gcond write it again")
