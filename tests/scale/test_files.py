"""Parquet, CSV and TSV files: what their columns become, and files that cannot be read."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from manykernels.scale import Reservoir, map_blocks, row_blocks


def frames(path, *given, **how):
    return pd.concat([block.X for block in row_blocks(path, *given, **how)], ignore_index=True)


def test_quoted_texts(tmp_path):
    file = tmp_path / "rows.csv"
    texts = ["plain, with a comma", 'a "quoted" word', "two\nlines", "tab\there", ""]
    expected = pd.DataFrame({"text": texts, "size": [1.0, 2.0, 3.0, 4.0, 5.0]})
    expected.to_csv(file, index=False, quoting=2)
    found = frames(file, block_size=2)
    assert found["text"].tolist() == texts
    assert found["size"].tolist() == [1.0, 2.0, 3.0, 4.0, 5.0]


def test_whole_numbers_that_get_fractions_later(tmp_path):
    """pyarrow finds types in the first megabyte."""
    file = tmp_path / "rows.csv"
    lines = ["a,label", *(f"{number},{number % 3}" for number in range(300_000)), "0.5,1"]
    file.write_text("\n".join(lines))
    blocks = row_blocks(file, "label", block_size=2**17)
    *_, last = blocks
    assert last.X["a"].iloc[-1] == 0.5
    # Labels stay what they are.
    assert last.y.dtype.kind == "i"
    assert blocks.n_rows is None


def test_a_number_that_is_none(tmp_path):
    file = tmp_path / "rows.csv"
    file.write_text("a,b\n1,2\n" * 1 + "3,4\n" * 300_000 + "x,5\n")
    with pytest.raises(
        ValueError, match=r"rows\.csv, after row \d+ of all: .*conversion error.*'x'"
    ):
        frames(file)


def test_labels_of_many_kinds(tmp_path):
    frame = pd.DataFrame(
        {"x": [0.0, 1.0, 2.0], "text": ["u", "v", "u"], "truth": [True, False, True]}
    )
    frame["category"] = frame["text"].astype("category")
    frame.to_parquet(tmp_path / "rows.parquet")
    for column, classes in (
        ("text", ["u", "v"]),
        ("truth", [False, True]),
        ("category", ["u", "v"]),
    ):
        blocks = row_blocks(tmp_path / "rows.parquet", column, block_size=2)
        _, census = Reservoir(2, 0, per_class=1).draw(blocks)
        assert census.classes.tolist() == classes
        assert census.counts.sum() == 3
        assert column not in next(iter(blocks)).X.columns


def test_several_targets(tmp_path):
    pd.DataFrame(np.arange(12.0).reshape(4, 3), columns=list("abc")).to_parquet(tmp_path / "r.pq")
    (block,) = row_blocks(tmp_path / "r.pq", ["c", "a"])
    assert block.y.tolist() == [[2.0, 0.0], [5.0, 3.0], [8.0, 6.0], [11.0, 9.0]]
    assert list(block.X.columns) == ["b"]


def test_rows_before_a_block_are_left_out(tmp_path):
    frame = pd.DataFrame({"a": np.arange(40.0)})
    frame.to_parquet(tmp_path / "rows.parquet", row_group_size=7)
    blocks = row_blocks(tmp_path / "rows.parquet", block_size=6)
    found = [(one.number, one.start, one.X["a"].tolist()) for one in blocks.blocks(3)]
    expected = [(one.number, one.start, one.X["a"].tolist()) for one in blocks][3:]
    assert found == expected
    assert found[0][1] == 18


def test_a_file_is_not_held_in_memory(tmp_path):
    file, n_rows = tmp_path / "rows.parquet", 40_000
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(n_rows, 50))).rename(columns=str)
    frame.to_parquet(file, row_group_size=n_rows // 40)

    def most(allocated, block):
        return max(allocated or 0, pa.total_allocated_bytes())

    blocks = row_blocks(file, block_size=1000)
    before = pa.total_allocated_bytes()
    held = blocks.reduce(most, max) - before
    assert held < frame.to_numpy().nbytes / 3


def test_missing_numbers(tmp_path):
    file = tmp_path / "rows.csv"
    file.write_text("a,b\n" + "1,2\n" * 8 + "1,\n")
    with pytest.raises(ValueError, match=r"NaN.*at row 8, column 'b'"):
        frames(file, block_size=3)
    assert np.isnan(frames(file, allow_nan=True)["b"].iloc[8])


def test_predictions(tmp_path):
    pd.DataFrame({"a": np.arange(10.0)}).to_csv(tmp_path / "rows.csv", index=False)
    found = map_blocks(tmp_path / "rows.csv", lambda X: X["a"] > 4.0, block_size=3)
    assert found.tolist() == [False] * 5 + [True] * 5


def test_files_of_different_columns(tmp_path):
    pd.DataFrame({"a": [1.0], "b": [2.0]}).to_parquet(tmp_path / "0.parquet")
    pd.DataFrame({"b": [3.0], "a": [4.0]}).to_parquet(tmp_path / "1.parquet")
    assert frames(tmp_path)["a"].tolist() == [1.0, 4.0]
    pd.DataFrame({"a": ["x"], "b": [4.0]}).to_parquet(tmp_path / "2.parquet")
    with pytest.raises(ValueError, match=r"Block 2, which begins at row 2: column 'a' is of type"):
        frames(tmp_path)


def test_text_files_of_different_columns(tmp_path):
    (tmp_path / "0.csv").write_text("a,c\n1,2\n")
    (tmp_path / "1.csv").write_text("a\n1\n")
    with pytest.raises(ValueError, match=r"Block 1, which begins at row 1: it has no column 'c'"):
        frames(tmp_path)
    with pytest.raises(ValueError, match=r"Block 1, .*: There is no column 'c' for y"):
        frames(tmp_path, "c")


def test_the_index_of_pandas_is_no_column(tmp_path):
    index = pd.Index(["x", "y"], name="sample")
    pd.DataFrame({"a": [1.0, 2.0]}, index=index).to_parquet(tmp_path / "rows.parquet")
    assert list(frames(tmp_path / "rows.parquet").columns) == ["a"]


@pytest.mark.parametrize(
    ("name", "y", "error", "message"),
    [
        ("none.csv", None, FileNotFoundError, "There is no file"),
        ("rows.xlsx", None, ValueError, r"the ending '\.xlsx' is none of \.parquet"),
        ("", None, ValueError, "files of several kinds|ending"),
        ("rows.csv", "z", ValueError, r"rows\.csv: There is no column 'z' for y"),
        ("rows.csv", [0, 1], ValueError, "y has to be the name of one of their columns"),
        ("one.csv", "a", ValueError, r"one\.csv: there are no columns besides 'a'"),
        ("empty.csv", None, ValueError, r"empty\.csv: "),
        ("headed.csv", None, ValueError, r"0 sample\(s\)"),
        ("bad.parquet", None, ValueError, r"bad\.parquet: "),
    ],
)
def test_files_that_cannot_be_read(name, y, error, message, tmp_path):
    (tmp_path / "rows.csv").write_text("a,b\n1,2\n3,4\n")
    (tmp_path / "rows.tsv").write_text("a\tb\n1\t2\n")
    (tmp_path / "rows.xlsx").write_text("?")
    (tmp_path / "one.csv").write_text("a\n1\n")
    (tmp_path / "empty.csv").touch()
    (tmp_path / "headed.csv").write_text("a,b\n")
    (tmp_path / "bad.parquet").write_text("no parquet")
    with pytest.raises(error, match=message):
        row_blocks(tmp_path / name, y).reduce(lambda n_rows, block: len(block), None)


def test_targets_of_files_are_needed(tmp_path):
    (tmp_path / "rows.csv").write_text("a,b\n1,2\n3,4\n")
    with pytest.raises(ValueError, match="requires y to be passed"):
        row_blocks(tmp_path / "rows.csv", needs_y=True)
