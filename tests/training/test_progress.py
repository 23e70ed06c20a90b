"""When a run looks, lowers its rate and ends."""

from __future__ import annotations

from itertools import pairwise

import pytest

from gcond.training.progress import Progress, longest
from gcond.training.recipe import PAPER_PROTOCOL, Recipe


def course(recipe, better=lambda epoch: False, fitted=lambda epoch: True):
    """The epochs before which the rate drops, those that are looked at, and the last."""
    progress, drops, looks = Progress(recipe), [], []
    while not progress.is_over:
        if progress.lowers_rate():
            drops.append(progress.epoch + 1)
        progress.end_epoch()
        if progress.looks_now:
            looks.append(progress.epoch)
            progress.has_looked(better=better(progress.epoch), has_fitted=fitted(progress.epoch))
    assert progress.looks == len(looks)
    return drops, looks, progress.epoch


@pytest.mark.parametrize("epochs", [1, 2, 3, 20, 21, 600])
def test_the_papers_protocol_does_and_looks_at_every_epoch(epochs):
    drops, looks, last = course(Recipe(epochs=epochs, **PAPER_PROTOCOL))
    assert drops == ([epochs // 2 + 1] if epochs > 1 else [])
    assert looks == list(range(1, epochs + 1))
    assert last == epochs


@pytest.mark.parametrize(("epochs", "every"), [(30, 7), (30, 30), (30, 99), (1, 5), (21, 10)])
def test_looks_at_equal_distances_end_with_the_last_epoch(epochs, every):
    _, looks, _ = course(Recipe(epochs=epochs, validate_every=every, patience=0))
    assert looks == sorted({*range(every, epochs + 1, every), epochs})


def test_looks_thin_out_at_each_rate():
    recipe = Recipe(epochs=600, patience=0)
    _, looks, last = course(recipe)
    first, second = ([look for look in looks if low < look <= high] for low, high in ((0, 300), (300, 600)))
    for start, part in ((0, first), (300, second)):
        assert part[:20] == list(range(start + 1, start + 21))  # each of the first, also after the drop
        for one, other in pairwise(part):
            # At most a tenth further on than the rate had come, but for the very last look.
            assert other == 600 or other - one == max(1, (one - start) // 10)
    assert last == looks[-1] == 600
    assert len(looks) == 101
    assert longest(recipe).looks == 101


def test_without_anything_better_the_rate_drops_and_then_it_ends():
    drops, looks, last = course(Recipe(epochs=600, validate_every=1, patience=40), better=lambda epoch: epoch == 7)
    assert drops == [7 + 40 + 1]
    assert last == looks[-1] == 7 + 40 + 20  # half the patience at the lower rate


def test_something_better_starts_the_waiting_anew():
    better = {7, 40, 100, 110}.__contains__
    drops, _, last = course(Recipe(epochs=600, validate_every=1, patience=40), better=better)
    assert drops == [40 + 40 + 1]
    assert last == 110 + 20


def test_nothing_ends_before_the_model_has_fitted_or_after_the_recipe():
    recipe = Recipe(epochs=200, validate_every=1, patience=10)
    assert course(recipe, fitted=lambda epoch: False)[::2] == ([101], 200)
    assert course(recipe, fitted=lambda epoch: epoch >= 60)[0] == [61]
    assert course(recipe, better=lambda epoch: True)[::2] == ([101], 200)
    # The second half is as long as it would have been, from wherever it began.
    assert course(recipe, better=lambda epoch: epoch > 11)[::2] == ([11], 110)


def test_patience_follows_the_epochs():
    assert Recipe(epochs=600).epochs_to_wait == 100
    assert Recipe(epochs=3000).epochs_to_wait == 500
    assert Recipe(epochs=60).epochs_to_wait == 100  # that is, never
    assert Recipe(epochs=600, patience=30).epochs_to_wait == 30
    assert Recipe(epochs=600, patience=0).epochs_to_wait is None


def test_the_longest_course_counts_no_looks_where_none_chooses():
    assert (longest(Recipe(epochs=50, select="last")).epoch, longest(Recipe(epochs=50, select="last")).looks) == (50, 0)
    assert longest(Recipe(epochs=50, validate_every=20)).looks == 3
