"""Tables from files: what is read, how columns are understood, and what is refused."""

from __future__ import annotations

import codecs
import io

import numpy as np
import pandas as pd
import pytest

from paretomkl.tables import TableError, load_table, read_table
from tests.cli.test_cli import patients


def test_bytes_are_text(tmp_path):
    frame = patients()
    fields = [("age", float), ("ward", "S5"), ("outcome", "S4")]
    np.save(tmp_path / "t.npy", np.array(list(frame[["age", "ward", "outcome"]].itertuples(index=False)), dtype=fields))
    table = load_table(tmp_path / "t.npy", "outcome")
    assert set(table.y) == {"ill", "well"}
    assert table.features == ["age", "ward"]
    assert set(table.X["ward"]) == {"east", "north", "west"}


@pytest.mark.parametrize(
    ("values", "regression"),
    [
        ([0, 1] * 30, False),
        ([True, False] * 30, False),
        (list(range(1, 8)) * 9, False),
        (list(range(10)) * 6, False),
        (list(range(20)) * 10, False),  # ten rows of each: the codes of twenty classes
        (["3", "4"] * 30, False),
        (["a", "b"] * 30, False),
        ([1.0, 2.0] * 30, False),  # as Parquet and NumPy may hold whole numbers
        ([0.5, 1.0, 2.0] * 20, True),
        (list(range(15)) * 4, True),
        (list(range(30)) * 10, True),
        ([-3, 10**6] + list(range(60)), True),
    ],
)
def test_which_targets_are_predicted_as_numbers(tmp_path, values, regression):
    file = tmp_path / "t.parquet"
    pd.DataFrame({"x": np.arange(len(values)) % 7, "y": values}).to_parquet(file)
    table = load_table(file, "y")
    assert table.regression == regression
    assert (
        (table.y.dtype == float)
        if regression
        else list(table.y) == [str(v) if isinstance(v, str) else v for v in values]
    )


def test_headers_may_have_any_length(tmp_path):
    """Ten thousand genes: names of more characters together than Python's csv module allows in one field."""
    names = [f"ENSG{k:011d}" for k in range(10_000)]
    for delimiter in ",;":
        rows = [delimiter.join(names), delimiter.join(map(str, range(len(names))))]
        (tmp_path / "genes.csv").write_text("\n".join(rows))
        frame = read_table(tmp_path / "genes.csv", delimiter=delimiter)
        assert list(frame.columns) == names
        assert frame.iloc[0, -1] == 9_999
    with pytest.raises(TableError, match="10000 with ';'"):
        read_table(tmp_path / "genes.csv")


@pytest.mark.parametrize("mark", [codecs.BOM_UTF16_LE, b""], ids=["marked", "unmarked"])
def test_two_bytes_per_character_are_noticed(tmp_path, mark):
    if not mark and pd.read_csv(io.StringIO("a\0b\n1\n")).columns[0] == "a":
        pytest.skip("old versions of pandas end a name at a zero byte")
    (tmp_path / "t.csv").write_bytes(mark + "age,kind\n1,a\n2,b\n".encode("utf-16-le"))
    with pytest.raises(TableError, match="--encoding utf-16"):
        read_table(tmp_path / "t.csv")


def test_a_mark_of_utf_8_is_not_part_of_a_name(tmp_path):
    (tmp_path / "t.csv").write_bytes(codecs.BOM_UTF8 + b"age, kind\n1, a\n")
    assert list(read_table(tmp_path / "t.csv")) == ["age", "kind"]


@pytest.mark.parametrize("text", ["\nage,kind\n1,a\n", "  \nage,kind\n1,a\n"])
def test_the_first_line_must_name_the_columns(tmp_path, text):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(TableError, match="an empty line"):
        read_table(tmp_path / "t.csv")


def test_a_sample_is_the_same_in_chunks_and_keeps_the_order(tmp_path, monkeypatch):
    pd.DataFrame({"row": np.arange(100), "x": np.arange(100) % 7}).to_csv(tmp_path / "t.csv", index=False)
    whole = read_table(tmp_path / "t.csv", sample=30, seed=1)
    monkeypatch.setattr("paretomkl.tables._files.CHUNK", 8)
    pd.testing.assert_frame_equal(read_table(tmp_path / "t.csv", sample=30, seed=1), whole)
    assert (len(whole), whole["row"].is_monotonic_increasing, list(whole)) == (30, True, ["row", "x"])
    assert not whole["row"].equals(read_table(tmp_path / "t.csv", sample=30, seed=2)["row"])


def test_arrays_of_one_file_are_columns(tmp_path):
    np.savez(tmp_path / "t.npz", x=np.eye(3), kind=np.arange(3))
    assert list(read_table(tmp_path / "t.npz")) == ["x0", "x1", "x2", "kind"]
    np.savez(tmp_path / "t.npz", x=np.eye(3), kind=np.arange(4))
    with pytest.raises(TableError, match=r"different lengths: \[3, 4\]"):
        read_table(tmp_path / "t.npz")
    np.save(tmp_path / "t.npy", np.zeros((2, 2, 2)))
    with pytest.raises(TableError, match="two dimensions"):
        read_table(tmp_path / "t.npy")


def test_arrow_streams_are_read_like_files(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table({"age": [1, 2], "kind": ["a", "b"]})
    with pyarrow.ipc.new_stream(tmp_path / "t.arrow", table.schema) as stream:
        stream.write_table(table)
    assert read_table(tmp_path / "t.arrow").to_dict("list") == {"age": [1, 2], "kind": ["a", "b"]}


def test_the_message_about_many_gaps_is_short_and_says_what_to_do(tmp_path):
    """With so many columns with gaps, --drop-missing would leave no row."""
    frame = patients().assign(**{f"a long name of a laboratory value, number {k}": np.nan for k in range(40)})
    frame.iloc[::7, 5:] = 1.0
    frame.to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(TableError, match=r"37 more .* let --impute fill the gaps in") as caught:
        load_table(tmp_path / "t.csv", "outcome")
    assert len(str(caught.value)) <= 400
