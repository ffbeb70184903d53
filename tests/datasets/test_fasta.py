"""read_fasta: what is read, what is refused, and what takes the records."""

import gzip
import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.model_selection import cross_val_score

from manykernels import MKFDA, Views
from manykernels.datasets import read_fasta
from manykernels.kernels import Spectrum

TEXT = """; two proteins
>P1 first one, of 12
MKVL
AAGI

; a comment between
VGVG*
>P2
mk VL
"""


@pytest.fixture
def write(tmp_path):
    def write(content, name="some.fasta"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


@pytest.mark.parametrize(
    "convert",
    [
        str.encode,
        lambda text: text.replace("\n", "\r\n").encode(),
        lambda text: gzip.compress(text.encode()),
        lambda text: text.rstrip("\n").encode(),
        lambda text: b"\xef\xbb\xbf" + text.encode(),
    ],
    ids=["plain", "windows", "gzip", "no last newline", "byte order mark"],
)
def test_records(write, convert):
    for path in (write(convert(TEXT)), str(write(convert(TEXT)))):
        records = read_fasta(path)
        assert records.names.tolist() == ["P1", "P2"]
        assert records.sequences.tolist() == ["MKVLAAGIVGVG", "mkVL"]
        assert records.descriptions.tolist() == ["first one, of 12", ""]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", r"some\.fasta is empty: it has no record"),
        ("; nothing but this\n\n", "is empty"),
        ("MKVL\n>P1\nMK\n", r"some\.fasta, line 1: a FASTA file must begin with a header.*'MKVL'"),
        (">P1\nMK\n>P2\n\n>P3\nMK\n", "line 3: the record 'P2' has no sequence"),
        (">P1\nMK\n>P2\n*\n", "line 3: the record 'P2' has no sequence"),
        (
            ">P1\nMK\n>P2\nMK\n>P1 again\nMK\n",
            "line 5: the record of line 1 has the same name, 'P1'",
        ),
        (">P1\nMK\n> \nMK\n", "line 3: the header '>' has no name"),
        (b">P1\nMK\xff\n", "line 2: this is not text"),
    ],
)
def test_what_is_refused(write, content, message):
    with pytest.raises(ValueError, match=message):
        read_fasta(write(content))


def test_no_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="none"):
        read_fasta(tmp_path / "none.fasta")


@pytest.fixture
def records(write):
    rng = np.random.default_rng(0)
    texts = ["".join(row) for row in rng.choice(list("ACGT"), (20, 25))]
    return read_fasta(write("".join(f">P{i}\n{text}\n" for i, text in enumerate(texts))))


def test_records_are_a_table_of_rows(records):
    assert len(records) == 20
    assert records.shape == (20,)
    assert records[3] == records.sequences[3] == list(records)[3]
    part = records[np.array([4, 2])]
    assert part.names.tolist() == ["P4", "P2"]
    assert part.sequences.tolist() == [records[4], records[2]]
    assert repr(records) == "FastaRecords(20 sequences of 25 to 25 letters)"
    assert_array_equal(np.asarray(records), records.sequences)
    assert pickle.loads(pickle.dumps(records)).names.tolist() == records.names.tolist()


def test_kernels_estimators_and_searches_take_records(records):
    y = np.arange(20) % 2
    texts = records.sequences.tolist()
    assert_array_equal(Spectrum(2)(records), Spectrum(2)(texts))
    model = MKFDA([Spectrum(1), Spectrum(2)]).fit(records, y)
    assert_allclose(
        model.decision_function(records),
        MKFDA([Spectrum(1), Spectrum(2)]).fit(texts, y).decision_function(texts),
    )
    scores = [cross_val_score(MKFDA(Spectrum(2)), X, y, cv=4) for X in (records, texts)]
    assert_array_equal(*scores)


def test_views_match_records_by_name(records):
    order = np.random.default_rng(1).permutation(20)
    weights = pd.DataFrame({"weight": np.arange(20.0)}, index=records.names).iloc[order]
    views = Views({"sequence": records, "weight": weights})
    assert views.labels.tolist() == records.names.tolist()
    assert views["sequence"].tolist() == records.sequences.tolist()
    assert views["weight"]["weight"].tolist() == list(range(20))
    with pytest.raises(ValueError, match="P19"):
        Views({"sequence": records[:19], "weight": weights})
