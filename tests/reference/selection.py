"""Herding and k-center from first principles: one candidate at a time, in exact fractions."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations

Point = Sequence[Fraction]


def _points(rows: Sequence[Sequence[float]]) -> list[Point]:
    return [[Fraction(value) for value in row] for row in rows]


def _mean(points: Sequence[Point]) -> Point:
    return [sum(column, Fraction(0)) / len(points) for column in zip(*points, strict=True)]


def _squared_distance(a: Point, b: Point) -> Fraction:
    return sum(((p - q) ** 2 for p, q in zip(a, b, strict=True)), Fraction(0))


def herding(rows: Sequence[Sequence[float]], count: int) -> list[int]:
    """At each step try every free point and keep the first whose addition brings the mean closest to the class mean."""
    points = _points(rows)
    mean = _mean(points)
    chosen: list[int] = []
    for _ in range(count):
        free = [i for i in range(len(points)) if i not in chosen]
        chosen.append(min(free, key=lambda i: _squared_distance(_mean([points[j] for j in [*chosen, i]]), mean)))
    return chosen


def k_center(rows: Sequence[Sequence[float]], count: int) -> list[int]:
    """Start at the first point closest to the mean; then always the first free point furthest from all chosen."""
    points = _points(rows)
    mean = _mean(points)
    chosen = [min(range(len(points)), key=lambda i: _squared_distance(points[i], mean))]
    while len(chosen) < count:
        free = [i for i in range(len(points)) if i not in chosen]
        chosen.append(max(free, key=lambda i: min(_squared_distance(points[i], points[j]) for j in chosen)))
    return chosen


def squared_radius(rows: Sequence[Sequence[float]], chosen: Sequence[int]) -> Fraction:
    """The squared distance of the worst covered point to its nearest centre."""
    points = _points(rows)
    return max(min(_squared_distance(point, points[j]) for j in chosen) for point in points)


def best_squared_radius(rows: Sequence[Sequence[float]], count: int) -> Fraction:
    """The smallest such radius over every choice of ``count`` points."""
    return min(squared_radius(rows, chosen) for chosen in combinations(range(len(rows)), count))
