"""Tall matrices in files are those in memory."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gcond.linalg import tall
from gcond.linalg.tall import MappedRows, RowFile, ScaledRows, map_rows, row_blocks, unit_rows


def numbers(rows, columns, seed=0):
    return torch.randn(rows, columns, generator=torch.Generator().manual_seed(seed))


def written(folder, matrix):
    file = RowFile.create(folder / "m.npy", tuple(matrix.shape))
    file.write_columns(0, matrix)
    return RowFile.open(file.path)


@given(rows=st.integers(1, 40), columns=st.integers(1, 9), data=st.data())
def test_rows_columns_and_places_are_those_of_the_matrix(rows, columns, data, tmp_path_factory):
    matrix = numbers(rows, columns)
    file = written(tmp_path_factory.mktemp("tall"), matrix)
    low = data.draw(st.integers(0, rows - 1))
    high = data.draw(st.integers(low + 1, rows))
    assert torch.equal(file.rows(low, high), matrix[low:high])
    left = data.draw(st.integers(0, columns - 1))
    right = data.draw(st.integers(left + 1, columns))
    assert torch.equal(file.columns(left, right), matrix[:, left:right])
    index = torch.tensor(data.draw(st.lists(st.integers(0, rows - 1), max_size=12)), dtype=torch.long)
    assert torch.equal(file[index], matrix[index])


def test_few_rows_of_a_long_file_are_read_alone(tmp_path, monkeypatch):
    matrix = numbers(50, 4)
    file = written(tmp_path, matrix)
    monkeypatch.setattr(tall, "SPARSE_READ", 10)
    index = torch.tensor([3, 49, 0])
    assert torch.equal(file[index], matrix[index])


def test_written_by_rows_it_is_the_same(tmp_path):
    matrix = numbers(23, 5)
    file = RowFile.create(tmp_path / "m.npy", (23, 5))
    for start in range(0, 23, 7):
        file.write_rows(start, matrix[start : start + 7])
    assert torch.equal(file.columns(0, 5), matrix)


def test_a_file_that_is_cut_short_or_of_another_kind_is_told(tmp_path):
    file = written(tmp_path, numbers(10, 3))
    file.path.write_bytes(file.path.read_bytes()[:-4])
    with pytest.raises(ValueError, match="cut short"):
        RowFile.open(file.path)


@pytest.mark.parametrize("block", [4, 40, 10**9])
def test_blocks_and_maps_are_the_same_as_at_once(block, tmp_path, monkeypatch):
    monkeypatch.setattr(tall, "BLOCK_BYTES", block)
    matrix = numbers(31, 3)
    file = written(tmp_path, matrix)
    assert torch.equal(torch.cat([rows for _, rows in row_blocks(file)]), matrix)
    mapped = map_rows(file, 1, lambda rows, index: rows.sum(1, keepdim=True) + index[:, None])
    assert isinstance(mapped, MappedRows)
    expected = map_rows(matrix, 1, lambda rows, index: rows.sum(1, keepdim=True) + index[:, None])
    assert torch.allclose(torch.cat([rows for _, rows in row_blocks(mapped)]), expected)
    assert torch.allclose(mapped[torch.tensor([4, 2])], expected[[4, 2]])
    unit = unit_rows(file)
    assert isinstance(unit, ScaledRows)
    assert torch.allclose(unit.columns(0, 3), unit_rows(matrix), atol=1e-6)
    assert torch.allclose(unit.rows(5, 9), unit_rows(matrix)[5:9], atol=1e-6)


def test_rows_that_are_made_from_others_come_in_blocks_that_all_on_the_way_fit_into(tmp_path, monkeypatch):
    matrix = numbers(30, 16)
    monkeypatch.setattr(tall, "BLOCK_BYTES", 4 * (16 + 1 + 1) * 5)
    seen = []
    sums = map_rows(written(tmp_path, matrix), 1, lambda rows, _: seen.append(len(rows)) or rows.sum(1, keepdim=True))
    halves = map_rows(sums, 1, lambda rows, _: rows / 2)
    assert torch.allclose(torch.cat([rows for _, rows in row_blocks(halves)]), matrix.sum(1, keepdim=True) / 2)
    assert max(seen) == 5
