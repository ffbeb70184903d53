"""Files as people have them: compressed, in other encodings, with samples in columns, odd ids."""

import gzip
import os
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import manykernels as mk
from manykernels.cli.console import DataError
from manykernels.cli.files import ReadOptions, read
from manykernels.cli.reading import matched
from tests.cli.conftest import BOTH, QUICK, N, frames

OUT = ("--output", "m.skops", "--force")
OPTIONS = ("--index", "id", "--target", "label", *QUICK, *OUT)


def fitted(run, *arguments):
    """Fit a model; return its training views and the notes."""
    code, _, err = run("fit", *arguments, *OUT)
    assert code == 0, err
    return mk.load("m.skops").X_fit_, err


# -- compressed files and encodings ----------------------------------------------------------


def test_a_compressed_table(folder, run):
    Path("a.csv.gz").write_bytes(gzip.compress(Path("a.csv").read_bytes()))
    X, _ = fitted(run, "--view", "a=a.csv.gz", *BOTH[2:])
    assert_allclose(X["a"], frames()[0][:N])
    # The target may be in a compressed file, too.
    fitted(run, "--view", "b=b.csv", "--index", "id", "--target", "a.csv.gz:label", *QUICK)


def test_a_table_that_unpacks_to_far_more_than_its_size(folder, run, monkeypatch):
    Path("a.csv.gz").write_bytes(gzip.compress(b"id,x\n" + b"0," * 2**20))
    monkeypatch.setattr("manykernels.cli.files._MODEST", 2**16)
    code, _, err = run("fit", "--view", "a=a.csv.gz", *OPTIONS)
    assert code == 1
    assert "'a.csv.gz' would unpack to" in err


def test_zstandard(folder, run, monkeypatch):
    Path("a.csv.zst").write_bytes(gzip.compress(Path("a.csv").read_bytes()))
    monkeypatch.setitem(sys.modules, "zstandard", None)
    code, _, err = run("fit", "--view", "a=a.csv.zst", *OPTIONS)
    assert code == 1
    assert err == (
        "manykernels: 'a.csv.zst' needs zstandard: pip install zstandard, or unpack the file "
        "first.\n"
    )
    package = ModuleType("zstandard")
    package.open = gzip.open
    monkeypatch.setitem(sys.modules, "zstandard", package)
    X, _ = fitted(run, "--view", "a=a.csv.zst", *BOTH[2:])
    assert_allclose(X["a"], frames()[0][:N])


def test_pipes_are_no_files(folder, run):
    os.mkfifo("pipe.csv")
    for name in ("pipe.csv", "-", "/dev/null"):
        code, _, err = run("fit", "--view", f"a={name}", *OPTIONS)
        assert code == 1
        assert f"'{name}' is no file but a pipe or device" in err
        assert "write the data into a file, such as data.csv." in err


def test_other_compressed_files(folder):
    Path("k.npz.gz").write_bytes(b"x")
    with pytest.raises(DataError, match=r"'k\.npz\.gz' is compressed: unpack it first"):
        read(Path("k.npz.gz"))


@pytest.mark.parametrize(
    "encoding",
    ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "latin-1", "cp1250"],
)
def test_encodings(folder, run, encoding):
    table = frames()[0][:N].rename(columns={"x": "Größe"})
    table.assign(label=np.where(frames()[2][:N] == "ill", "krank", "müde")).to_csv(
        "odd.csv", encoding=encoding
    )
    X, err = fitted(run, "--view", "a=odd.csv", *OPTIONS)
    assert list(X["a"].columns) == ["Größe", "y"]
    assert ("'odd.csv' is not encoded as UTF-8 and is read as latin-1" in err) == (
        encoding in ("latin-1", "cp1250")
    )
    X, err = fitted(run, "--view", "a=odd.csv", "--encoding", encoding, *OPTIONS)
    assert list(X["a"].columns) == ["Größe", "y"]
    assert err == ""


def test_an_encoding_that_is_wrong(folder, run):
    code, _, err = run("fit", "--view", "a=a.csv", *OPTIONS, "--encoding", "klingon")
    assert code == 2
    assert "There is no encoding 'klingon'; common ones are utf-8" in err
    Path("odd.csv").write_bytes("id,ä\n1,2\n".encode("latin-1"))
    code, _, err = run("fit", "--view", "a=odd.csv", *OPTIONS, "--encoding", "utf-8")
    assert code == 1
    assert "'odd.csv' cannot be read: its text is not encoded as utf-8" in err
    Path("odd.csv").write_bytes(b"\x89PNG\r\n\x1a\n\xff\x00")
    code, _, err = run("fit", "--view", "a=odd.csv", *OPTIONS)
    assert code == 1
    assert "'odd.csv' cannot be read: it is not text" in err


# -- Excel -----------------------------------------------------------------------------------


def test_excel_without_openpyxl(folder, run, monkeypatch):
    Path("a.xlsx").write_bytes(b"x")
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    code, _, err = run("fit", "--view", "a=a.xlsx", *OPTIONS)
    assert code == 1
    assert err == (
        "manykernels: 'a.xlsx' needs openpyxl: pip install \"manykernels[cli,excel]\", or save "
        "the sheet as .csv.\n"
    )


class Workbook:
    """As `pandas.ExcelFile` would give a workbook of two sheets; ids are numbers."""

    sheet_names = ("people", "remarks")

    def __init__(self, path, engine):
        assert engine == "openpyxl"

    def __enter__(self):
        return self

    def __exit__(self, *given):
        pass

    def parse(self, sheet, header=0, nrows=None, dtype=None):
        assert sheet == "people"
        table = frames()[0][:N].assign(label=frames()[2][:N]).reset_index()
        if header is None:
            return pd.DataFrame([table.columns])
        return table.astype({"id": int, "x": str}).astype(dtype)


def test_excel(folder, run, monkeypatch):
    np.savez("a.xlsx.npz", x=1.0)  # a zip archive
    Path("a.xlsx.npz").rename("a.xlsx")
    monkeypatch.setitem(sys.modules, "openpyxl", ModuleType("openpyxl"))
    monkeypatch.setattr(
        "manykernels.cli.files.pd",
        SimpleNamespace(**{**vars(pd), "ExcelFile": Workbook}),
    )
    X, err = fitted(run, "--view", "a=a.xlsx", "--view", "b=b.csv", "--match-ids", "number",
                    *OPTIONS)  # fmt: skip
    assert_allclose(X["a"], frames()[0][:N])
    assert "note: 'a.xlsx' has several sheets: the first, 'people', is read." in err
    assert "note: 'a.xlsx': column 'x' has numbers stored as text." in err


# -- samples in columns ----------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_samples_in_columns(folder, run, ending):
    a, b, label = frames()
    table = a.assign(label=label)[:N]
    turned = table.T.rename_axis("feature")
    turned.to_csv("turned.csv")
    if ending == "parquet":  # without the texts: a column has one type
        turned.drop("label").astype(float).reset_index().to_parquet("turned.parquet")
        label[:N].to_csv("label.csv")
    where = "label" if ending == "csv" else "label.csv:label"
    options = ("--index", "id", "--target", where, *QUICK)
    views = ("--view", f"a=turned.{ending}", "--view", "b=b.csv")
    X, _ = fitted(run, *views, *options, "--transpose", "a")
    assert_allclose(X["a"], a[:N])
    assert list(X["a"].index) == list(a.index[:N])
    assert list(X["b"].index) == list(a.index[:N])
    same = mk.load("m.skops").predict_proba({"a": a[N:], "b": b[N:]})
    a[N:].T.rename_axis("feature").to_csv("new.csv")
    code, _, err = run("predict", "m.skops", "--view", "a=new.csv", "--view", "b=b_new.csv",
                       "--transpose", "a", "--output", "p.csv")  # fmt: skip
    assert code == 0, err
    table = pd.read_csv("p.csv", dtype={"id": str}).set_index("id").loc[a.index[N:]]
    assert_allclose(table["probability_ill"], same[:, 0])
    # All files have samples in columns.
    b[:N].T.to_csv("b_turned.csv")
    if ending == "csv":
        views = ("--view", "a=turned.csv", "--view", "b=b_turned.csv")
        X, _ = fitted(run, *views, *options, "--transpose", "all")
        assert_allclose(X["b"]["age"].astype(float), b["age"][:N])


@pytest.mark.parametrize("first", ["feature", "id"])
def test_samples_in_columns_are_recognised(folder, run, first):
    frames()[0][:N].T.rename_axis(first).to_csv("turned.csv")
    views = ("--view", "t=turned.csv", "--view", "b=b.csv")
    code, _, err = run("fit", *views, "--index", "id", "--target", "a.csv:label", *QUICK, *OUT)
    assert code == 1
    assert (
        "Columns of 'turned.csv', such as '000', are ids of 'b.csv': if it has a column per "
        "sample, pass --transpose t."
    ) in err


@pytest.mark.parametrize("index", [(), ("--index", "id")])
def test_a_single_table_with_samples_in_columns_is_recognised(folder, run, index):
    a, _, label = frames()
    a.assign(label=label)[:N].T.to_csv("turned.csv")
    options = (*index, "--target", "label", *QUICK)
    code, _, err = run("fit", "--view", "t=turned.csv", *options, *OUT)
    assert code == 1
    assert "if it has a column per sample, pass --transpose" in err.lower()
    X, _ = fitted(run, "--view", "t=turned.csv", *options, "--transpose", "t")
    assert_allclose(X["t"], a[:N])


def test_spaces_around_names_and_files(folder, run):
    X, _ = fitted(run, "--view", " my a = a.csv", *OPTIONS)
    assert list(X) == ["my a"]


def test_tables_that_cannot_be_turned(folder, run):
    for text, said in [
        ("feature\nx\n", "it has no columns of samples besides the names of the features"),
        ("feature,s1,s2\nx,1,2\n,3,4\n", "names of features, is empty in row 2"),
        ("feature,s1,s2\nx,1,2\nx,3,4\n", "several columns are called 'x'"),
        ("feature,s1,\nx,1,2\n", "must have the name of a sample in every column"),
    ]:
        Path("odd.csv").write_text(text)
        code, _, err = run("fit", "--view", "a=odd.csv", *OPTIONS, "--transpose", "a")
        assert code == 1
        assert said in err
    code, _, err = run("fit", "--view", "a=a.csv", *OPTIONS, "--transpose", "b")
    assert code == 2
    assert "--transpose 'b': there is no view 'b', only a." in err
    np.savez("k.npz", K=np.eye(3))
    code, _, err = run("fit", "--view", "k=k.npz", *OPTIONS, "--transpose", "all")
    assert code == 1
    assert "'k.npz' is not a table that --transpose could turn" in err


def test_labels_and_numbers_of_a_turned_table(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("f;s1;s2\nx;1,5;2\npatient;007;008\nsite;a;\n")
    contents = read(path, ReadOptions(texts=("patient",), transpose=True))
    assert list(contents.labels) == ["s1", "s2"]
    assert contents.columns["x"].tolist() == [1.5, 2.0]
    assert contents.columns["patient"].tolist() == ["007", "008"]
    assert contents.columns["site"].isna().tolist() == [False, True]


@pytest.mark.parametrize(
    ("array", "said"),
    [
        (np.zeros((2, 2, 5, 5)), "its array 'K' has 4 dimensions, not one to three"),
        (np.zeros((5, 4, 3)), "square"),
        (np.eye(40)[:, :20], "Training needs square kernel matrices, of all samples with each"),
    ],
)
def test_arrays_that_are_no_kernels(folder, run, array, said):
    np.savez("k.npz", K=array)
    code, _, err = run("fit", "--view", "k=k.npz", "--target", "a.csv:label", *QUICK, *OUT)
    assert code == 1
    assert said in err


# -- ids -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("label", "rules", "expected"),
    [
        ("S00", (), "S00"),
        ("S00", ("case",), "s00"),
        ("S00", ("case", "number"), "s0"),
        ("000", ("number",), "0"),
        ("0.0", ("number",), "0"),
        ("10.50", ("number",), "10.5"),
        ("10", ("number",), "10"),
        ("100.", ("number",), "100"),
        ("a10b020", ("number",), "a10b20"),
        ("1.05", ("number",), "1.05"),
    ],
)
def test_rules(label, rules, expected):
    assert matched(label, rules) == expected


@pytest.mark.parametrize(
    ("change", "differing", "rules"),
    [
        (lambda label: str(int(label)), "leading zeros", "number"),
        (lambda label: f"{int(label)}.0", "leading zeros and decimals, such as .0", "number"),
        (lambda label: f"P{label}", "upper and lower case", "case"),
        (lambda label: f"P{int(label)}", "upper and lower case and leading zeros", "case,number"),
    ],
)
def test_ids_that_look_the_same(folder, run, change, differing, rules):
    a, b, label = frames()
    a.assign(label=label)[:N].rename(index=lambda name: f"p{name}" if "case" in rules else name)[
        ["x", "y", "label"]
    ].to_csv("a.csv")
    b[:N].rename(index=change).to_csv("b.csv")
    code, _, err = run("fit", *BOTH, *OUT)
    assert code == 1
    assert "'a.csv' and 'b.csv' share no id: " in err
    assert f"40 ids look the same but for {differing}: pass --match-ids {rules}." in err
    assert "--missing" not in err
    # Not even with --missing are they taken for different samples.
    assert run("fit", *BOTH, "--missing", "mean", *OUT)[0] == 1
    X, _ = fitted(run, *BOTH, "--match-ids", rules)
    assert_allclose(X["a"], a[:N])
    assert_allclose(X["b"]["age"], b["age"][:N])


def test_spaces_around_ids_do_not_matter(folder, run):
    frames()[1][:N].rename(index=lambda name: f" {name}  ").to_csv("b.csv")
    fitted(run, *BOTH)


def test_ids_that_differ(folder, run):
    _, b, _ = frames()
    b[:N].rename(index=lambda name: f"other{name}").to_csv("b.csv")
    code, _, err = run("fit", *BOTH, *OUT)
    assert code == 1
    assert "'a.csv' and 'b.csv' share no id: '000', '001', '002' and 'other000'" in err
    assert "Check that --index names the column with the same ids in all files." in err
    assert "--missing" not in err
    # Some ids are the same: a note, and the usual error about samples that lack a view.
    b[:N].rename(index=lambda name: name if name < "005" else str(int(name))).to_csv("b.csv")
    code, _, err = run("fit", *BOTH, *OUT)
    assert code == 1
    assert "note: 'a.csv' and 'b.csv' share 5 of 40 ids. 35 ids look the same" in err
    # Only few differ.
    b[:N].rename(index=lambda name: name if name >= "005" else str(int(name))).to_csv("b.csv")
    code, _, err = run("fit", *BOTH, *OUT)
    assert code == 1
    assert (
        "note: 'a.csv' and 'b.csv' share 35 of 40 ids. 5 ids look the same but for leading zeros: "
        "pass --match-ids number."
    ) in err
    fitted(run, *BOTH, "--match-ids", "number")
    # Samples that are in one file only are no reason for a note.
    b[5:N].to_csv("b.csv")
    assert "note" not in run("fit", *BOTH, *OUT, "--force", "--missing", "mean")[2]


def test_rules_that_make_ids_equal(folder, run):
    a, _, label = frames()
    table = a.assign(label=label)[:N]
    table.index = ["7", "007", *table.index[2:]]
    table.rename_axis("id").to_csv("a.csv")
    code, _, err = run("fit", "--view", "a=a.csv", *OPTIONS, "--match-ids", "number")
    assert code == 1
    assert "'a.csv' has several rows whose id is '7', with --match-ids number." in err
    code, _, err = run("fit", "--view", "a=a.csv", *OPTIONS, "--match-ids", "strip")
    assert code == 2
    assert "--match-ids must be case, number or case,number, not 'strip'" in err
