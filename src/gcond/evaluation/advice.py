"""Advice from a comparison, in plain sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gcond.results import WHOLE, Comparison, Line, SourceSummary

# Below this share of the whole graph's accuracy a condensed graph is no stand-in for it.
GOOD_SHARE = 0.95
# Accuracies this near each other make no difference to a person who chooses.
CLOSE = 0.01
_FLOAT_BYTES = 4


def advise(comparison: Comparison) -> Iterator[str]:
    """Sentences on what to use, whether something cheaper does as well, when it pays, what the node ratio hides.

    It goes by the first model; the best line is the smallest budget that is within half a point of the best.
    """
    model = comparison.models[0]
    lines = [line for line in comparison.lines if line.model == model and line.method != WHOLE]
    if not lines:
        return
    top = next(line for line in comparison.lines if line.model == model and line.method == WHOLE)
    highest = max(line.mean for line in lines)
    best = min((line for line in lines if line.mean >= highest - 0.005), key=lambda line: (line.nodes, -line.mean))
    yield _what_is_kept(best, top)
    if cheaper := _cheaper(best, lines):
        yield _instead(cheaper, best)
        best = cheaper
    if best.train_cpu_seconds is not None and top.train_cpu_seconds is not None:
        yield _when_it_pays(best, top, top.train_cpu_seconds - best.train_cpu_seconds)
    if heavy := [line for line in lines if line.bytes > top.bytes]:
        yield _what_ratios_hide(heavy, top, comparison.source)


def _what_is_kept(best: Line, top: Line) -> str:
    share = best.kept or 0.0
    kept = f"{best.method} with {best.nodes:,} nodes keeps {100 * share:.1f} % of the whole graph's accuracy"
    if share >= GOOD_SHARE:
        return f"{kept} ({top.model}: {100 * best.mean:.1f} of {100 * top.mean:.1f} %)."
    return f"{kept} at best: try a larger budget, or train on the whole graph."


def _cheaper(best: Line, lines: Sequence[Line]) -> Line | None:
    """The cheapest line tied with ``best`` at its budget that takes less than half the time to condense.

    A few seeds cannot tell anything apart, so the means must be close as well.
    """
    tied = [
        line
        for line in lines
        if line.nodes == best.nodes and line.mark == "tied" and best.mean - line.mean <= CLOSE
        if _price(line) < _price(best) / 2
    ]
    return min(tied, key=_price, default=None)


def _instead(cheaper: Line, best: Line) -> str:
    what = {"selected": "a coreset", "merged": "merged nodes", "learned": "a cheaper method"}[cheaper.kind]
    return (
        f"{cheaper.method} ({what}) does as well here: {100 * cheaper.mean:.1f} % against {100 * best.mean:.1f} %, "
        f"which chance explains (p = {cheaper.p_value:.2f}), in "
        f"{_seconds(_price(cheaper))} instead of {_seconds(_price(best))}."
    )


def _when_it_pays(line: Line, top: Line, saved: float) -> str:
    if line.break_even is None:
        otherwise = "it pays in storage, not in time." if line.bytes < top.bytes else "it does not pay."
        return (
            f"Training on {line.method}'s graph takes no less time than on the whole one, validation included: "
            f"{otherwise}"
        )
    if line.break_even == 1:
        return f"Condensing by {line.method} pays in time from the first training on."
    return (
        f"Condensing by {line.method} pays in time from training number {line.break_even:,} on: it takes "
        f"{_seconds(_price(line))} once, and saves {_seconds(saved)} per training."
    )


def _what_ratios_hide(heavy: Sequence[Line], top: Line, source: SourceSummary) -> str:
    worst = max(heavy, key=lambda line: line.bytes)
    shares = (
        f"With {worst.method}, {100 * worst.nodes / top.nodes:.1f} % of the nodes are "
        f"{100 * worst.bytes / top.bytes:.0f} % of the bytes"
    )
    features = _FLOAT_BYTES * (source.features or 0)
    if worst.nodes * features < worst.bytes / 2:
        return f"{shares}: most of them are its {worst.edges:,.0f} edges."
    if top.nodes * features > top.bytes:
        return f"{shares}: the condensed features are dense, and the source keeps its own sparse."
    return f"{shares}."


def _price(line: Line) -> float:
    """CPU seconds of condensing."""
    return line.condense_cpu_seconds or 0.0


def _seconds(duration: float) -> str:
    return f"{duration:.1f} s" if duration >= 10 else f"{duration:.2g} s"
