"""Default kernels by what a table holds."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.preprocessing import StandardScaler

from manykernels import MKFDA, MKSVC, MKSVR, KernelStack, auto_kernels, kernels_for
from manykernels.kernels import Categorical, Jaccard, Linear
from tests.problems import slow

RNG = np.random.default_rng(0)
N_ROWS = 60
NUMBERS = RNG.lognormal(size=(N_ROWS, 3)) * [1.0, 100.0, 1e-3]
BITS = RNG.integers(2, size=(N_ROWS, 16))
WORDS = sparse.csr_array(RNG.poisson(0.3, size=(N_ROWS, 20)).astype(float))
COLOURS = RNG.choice(["red", "green", "blue"], size=N_ROWS)
LABELS = NUMBERS[:, 0] + BITS[:, 0] + (COLOURS == "red") > 1.8
COLUMNS = {"size": NUMBERS[:, 0], "colour": COLOURS, "price": NUMBERS[:, 1], "new": BITS[:, 0] > 0}
FRAMES = [pd.DataFrame, pl.DataFrame]

DENSE = ["linear", "rbf(0.5)", "rbf(1)", "rbf(5)", "laplacian", "cosine", "scores-laplacian"]
OF_NUMBERS = [name for name in DENSE if name != "rbf(5)"]  # beside categories
MIXED = [*OF_NUMBERS, "categories", "numbers*categories", "joined(5)"]
OF_BITS = ["jaccard", "rbf(0.7)"]
OF_SPARSE = ["cosine", "rbf(0.7)", "scaled-cosine"]


def names(table):
    return [name for name, _ in auto_kernels(table).kernels]


def matrices(table):
    stack = auto_kernels(table).fit(table)(table)
    return {name: stack.kernel(name) for name in stack.names}


# -- kinds of tables -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        (NUMBERS, DENSE),
        (NUMBERS.tolist(), DENSE),
        (pd.DataFrame(NUMBERS), DENSE),
        (NUMBERS.astype(object), DENSE),
        (BITS, OF_BITS),
        (BITS > 0, OF_BITS),
        (pd.DataFrame(BITS > 0), OF_BITS),
        (sparse.csc_matrix(BITS), [*OF_BITS, "scaled-cosine"]),
        (np.eye(20), [*OF_BITS, "scaled-cosine"]),
        (WORDS, OF_SPARSE),
        (-WORDS, OF_SPARSE),
        (2 * np.eye(20), OF_SPARSE),
        (pd.DataFrame({"a": ["u", "v"]}), ["categories", "categories(5)"]),
        (pd.DataFrame(COLUMNS), MIXED),
        (pl.DataFrame(COLUMNS), MIXED),
    ],
)
def test_kernels_by_kind(table, expected):
    assert names(table) == expected


def test_entries_that_are_stored_twice_are_counts():
    twice = sparse.coo_array(([1.0, 1.0, 1.0], ([0, 0, 1], [0, 0, 1])), shape=(2, 2))
    assert names(twice) == OF_SPARSE
    assert_array_equal(twice.data, [1.0, 1.0, 1.0])


def test_linear_kernel_of_standardised_columns():
    scaled = StandardScaler().fit_transform(NUMBERS)
    assert_allclose(matrices(NUMBERS)["linear"], Linear()(scaled))


def test_only_words_that_are_never_negative_are_damped():
    counts, signed = matrices(WORDS)["cosine"], matrices(-WORDS)["cosine"]
    damped = np.log1p(WORDS.toarray())
    norms = np.linalg.norm(damped, axis=1)
    assert_allclose(counts * np.outer(norms, norms), damped @ damped.T, atol=1e-12)
    assert not np.allclose(counts, signed)


def test_units_and_order_of_columns_matter_to_the_cosine_only():
    other = (NUMBERS * [1e3, 1e-3, 10.0] + [0.0, 5.0, -1.0])[:, [2, 0, 1]]
    expected, found = matrices(NUMBERS), matrices(other)
    for name in set(DENSE) - {"cosine"}:
        assert_allclose(found[name], expected[name], atol=1e-9)


@pytest.mark.parametrize("frame", FRAMES)
def test_each_kernel_of_a_mixed_frame_has_its_columns(frame):
    table = frame(COLUMNS)
    kernels = dict(auto_kernels(table).kernels)
    assert kernels["categories"].columns == ["colour"]
    assert all(kernels[name].columns == ["size", "price", "new"] for name in OF_NUMBERS)
    alone = np.column_stack([COLUMNS[name] for name in ("size", "price", "new")])
    expected, found = matrices(alone), matrices(table)
    for name in OF_NUMBERS:
        assert_allclose(found[name], expected[name], atol=1e-12)
    assert_array_equal(found["categories"], np.equal.outer(COLOURS, COLOURS))
    wide = np.exp(-2.0 * (1.0 - found["categories"]) / 25.0)
    assert_allclose(found["joined(5)"], expected["rbf(5)"] * wide, atol=1e-12)
    assert_allclose(found["numbers*categories"], found["rbf(1)"] * found["categories"])


def test_kinds_of_columns():
    table = pd.DataFrame(
        {
            "code": pd.Series([1, 2, 1], dtype="category"),
            "text": pd.Series(["1", "2", "3"]),
            "objects": pd.Series([1.5, 2, 3], dtype=object),
            "nullable": pd.Series([1, 2, 3], dtype="Int64"),
            "mixed": pd.Series(["one", 2, "three"], dtype=object),
        }
    )
    kernels = dict(auto_kernels(table).kernels)
    assert kernels["categories"].columns == ["code", "text", "mixed"]
    assert kernels["linear"].columns == ["objects", "nullable"]
    codes = pl.DataFrame({"code": pl.Series(["u", "v"], dtype=pl.Categorical)})
    assert names(codes) == ["categories", "categories(5)"]


@pytest.mark.parametrize("wrong", ["?", "n/a", ("a", "tuple")], ids=str)
@pytest.mark.parametrize("right", [1.5, "1.5"], ids=["numbers", "text"])
def test_numbers_with_mistakes_are_no_categories(right, wrong):
    entries = [right, right, wrong, right, None]
    frame = pd.DataFrame({"a": pd.Series(entries, dtype=object), "b": range(5)})
    with pytest.raises(ValueError, match=r"column 'a' holds numbers, and 1 entries .* at row 2"):
        auto_kernels(frame)
    named = frame.assign(a=frame["a"].astype(str).astype("category"))
    assert "categories" in names(named)


def test_numbers_whose_squares_are_infinite_are_named():
    table = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": [0.0, -1e300, 1.0]})
    with pytest.raises(ValueError, match=r"number at row 1, column 'b' that is too large to"):
        auto_kernels(table)
    with pytest.raises(ValueError, match=r"view 'v': X has a number at row 1, selected column 1 "):
        MKFDA().fit({"v": table.to_numpy()}, [0, 1, 0])


def test_bits_of_a_mixed_frame():
    bits = [f"bit{j}" for j in range(BITS.shape[1])]
    table = pd.DataFrame(BITS, columns=bits).assign(c=np.resize(list("uvw"), len(BITS)))
    kernels = dict(auto_kernels(table).kernels)
    assert isinstance(kernels["jaccard"], Jaccard)
    assert kernels["jaccard"].columns == bits
    assert "numbers*categories" in matrices(table)


def test_few_columns_of_bits_may_hold_other_numbers_later():
    table = pd.DataFrame({"a": [0, 1, 1], "b": [1, 1, 0]})
    union = auto_kernels(table).fit(table)
    assert np.isfinite(union(table + 2, table).data).all()


def test_counts_may_be_negative_later():
    for table in (WORDS, WORDS.toarray()):
        union = auto_kernels(table).fit(table)
        assert np.isfinite(union(-3 * table, table).data).all()


def test_names_that_stand_twice():
    twice = pd.DataFrame(NUMBERS, columns=["a", "a", "b"])
    assert names(twice) == DENSE
    with pytest.raises(ValueError, match="cannot be selected: Expected unique column names"):
        auto_kernels(twice.assign(c="u")).fit(twice.assign(c="u"))


def test_columns_without_names():
    table = pd.DataFrame([[1.5, "u", 2.0], [2.5, "v", 1.0]])
    kernels = dict(auto_kernels(table).kernels)
    assert kernels["categories"].columns == [1]
    assert kernels["linear"].columns == [0, 2]
    assert_array_equal(matrices(table)["categories"], np.eye(2))


# -- in use ----------------------------------------------------------------------------------


def test_a_union_to_change_and_to_copy():
    union = auto_kernels(NUMBERS).set_params(**{"rbf(1)__kernel__width": 3.0})
    assert dict(clone(union).kernels)["rbf(1)"].kernel.width == 3.0
    fitted = union.fit(NUMBERS)
    copy = pickle.loads(pickle.dumps(fitted))
    assert_array_equal(np.asarray(copy(NUMBERS)), np.asarray(fitted(NUMBERS)))


@pytest.mark.parametrize("table", [NUMBERS, BITS, WORDS, pd.DataFrame(COLUMNS)])
def test_a_row_of_weight_two_counts_as_two_rows(table):
    weights = np.random.default_rng(1).integers(0, 3, size=N_ROWS)
    rows = np.repeat(np.arange(N_ROWS), weights)
    repeated = table.iloc[rows] if isinstance(table, pd.DataFrame) else table[rows]
    weighted = auto_kernels(table).fit(table, sample_weight=weights)(table)
    expected = auto_kernels(table).fit(repeated)(table)
    assert_allclose(np.asarray(weighted), np.asarray(expected), atol=1e-9)


@pytest.mark.parametrize("table", [NUMBERS, BITS, WORDS, *slow(pd.DataFrame(COLUMNS))])
def test_fewer_rows_than_it_was_made_from(table):
    """As in a cross-validation; nothing depends on the number of rows."""
    model = MKFDA(auto_kernels(table))
    assert len(cross_val_score(model, table, LABELS, cv=2, error_score="raise")) == 2


@pytest.mark.parametrize("estimator", [MKFDA, *slow(MKSVC, MKSVR)])
def test_estimators_learn(estimator):
    table = pd.DataFrame(COLUMNS)
    model = estimator(auto_kernels(table)).fit(table, LABELS.astype(float))
    assert model.score(table, LABELS) > 0.5
    assert len(model.weights_) == len(MIXED)


@pytest.mark.parametrize(
    "table",
    [
        np.array([[3.0]]),
        np.array([[3.0, 1.0], [3.0, 2.0]]),
        np.full((4, 2), 5.0),
        np.zeros((4, 2)),
        sparse.csr_array((4, 2)),
        pd.DataFrame({"a": [2.0, 2.0], "b": ["u", "u"]}),
    ],
)
def test_constant_columns_and_tiny_tables(table):
    assert all(np.isfinite(matrix).all() for matrix in matrices(table).values())


# -- sequences -------------------------------------------------------------------------------


def proteins(n=8, length=40, letters="ACDEFGHIKLMNPQRSTVWY"):
    rows = np.random.default_rng(0).choice(list(letters), (n, length))
    return ["".join(row) for row in rows]


SPECTRA = ["spectrum(1)", "spectrum(2)", "spectrum(3)"]


@pytest.mark.parametrize(
    "sequences",
    [
        proteins(),
        np.array(proteins(), dtype=object),
        np.array(proteins())[:, None],
        pd.Series(proteins()),
        [*proteins(), None, float("nan")],
        [text.lower() for text in proteins()],
        proteins(letters="ACGTN-"),
        [*proteins(), "MKV*"],
    ],
)
def test_sequences_have_kernels_of_short_words(sequences):
    kernels = dict(auto_kernels(sequences).kernels)
    assert list(kernels) == SPECTRA
    assert repr(kernels["spectrum(2)"]) == "Spectrum(k=2)"


def test_words_are_not_longer_than_the_shortest_sequence():
    assert [name for name, _ in auto_kernels([*proteins(), "MK"]).kernels] == SPECTRA[:2]


@pytest.mark.parametrize(
    "texts",
    [
        ["a text of some words and blanks"] * 3,
        [text[:19] for text in proteins()],
        [f"{text} " for text in proteins()],
        [f"{text}7" for text in proteins()],
        [text.capitalize() for text in proteins()],
        proteins(2) * 4,
        [*proteins(), ""],
        proteins(letters="".join(map(chr, range(0x391, 0x3A1))) + "ABCDEFGHIJKLMNOPQRSTUVWXYZ"),
    ],
    ids=["words", "short", "blanks", "digits", "names", "repeated", "empty", "many letters"],
)
def test_other_strings_have_no_default(texts):
    with pytest.raises(ValueError, match="strings that are no sequences: pass kernels"):
        auto_kernels(texts)
    frame = pd.DataFrame({"text": texts})
    assert list(dict(auto_kernels(frame).kernels)) == ["categories", "categories(5)"]


@pytest.mark.parametrize("frame", FRAMES)
def test_columns_of_sequences(frame):
    columns = {"gene": proteins(), "size": np.arange(8.0)}
    kernels = dict(auto_kernels(frame(columns)).kernels)
    numbers = [name for name, _ in auto_kernels(np.arange(8.0)[:, None]).kernels]
    assert list(kernels) == numbers + SPECTRA
    assert kernels["spectrum(3)"].columns == "gene"
    assert kernels["linear"].columns == ["size"]
    kernels = dict(auto_kernels(frame({**columns, "kind": list("abcdabcd")})).kernels)
    numbers.remove("rbf(5)")
    of_both = ["categories", "numbers*categories", "joined(5)"]
    assert list(kernels) == [*numbers, *of_both, *SPECTRA]
    kernels = dict(auto_kernels(frame({"a": proteins(), "b": proteins()})).kernels)
    assert list(kernels) == [f"{column}:{name}" for column in "ab" for name in SPECTRA]


def test_a_view_of_sequences():
    views = {"gene": proteins(), "size": np.arange(8.0)[:, None]}
    names = [name for name, _ in kernels_for(views).kernels]
    assert names[:3] == [f"gene:{name}" for name in SPECTRA]
    model = MKFDA().fit(views, np.arange(8) % 2)
    assert model.predict(views).shape == (8,)


# -- what is refused -------------------------------------------------------------------------


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("odd", [[1.0, None, 2.0], [1.0, float("nan"), 2.0]])
def test_missing_values_are_named(frame, odd):
    table = frame({"a": [1.0, 2.0, 3.0], "odd": odd, "c": ["u", "v", "w"]})
    with pytest.raises(ValueError, match=r"row 1, column 'odd': impute it.*SimpleImputer\(\)"):
        auto_kernels(table)


def test_missing_values_of_arrays_are_named():
    broken = NUMBERS.copy()
    broken[4, 2] = np.nan
    for table in (broken, sparse.csr_array(broken)):
        with pytest.raises(ValueError, match="row 4, selected column 2: impute it"):
            auto_kernels(table)


@pytest.mark.parametrize("frame", FRAMES)
def test_missing_values_of_new_rows_are_named(frame):
    table = frame(COLUMNS)
    model = MKFDA(auto_kernels(table)).fit(table, LABELS)
    new = frame({**COLUMNS, "price": [np.nan, *NUMBERS[1:, 1]]})
    with pytest.raises(ValueError, match=r"'linear': .*\(NaN\) at row 0, selected column 1"):
        model.predict(new)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (np.array(["MKV", "MLL"], dtype=object), "no default kernels of single objects"),
        (["MKV", "MLL"], "no default kernels of single objects"),
        (pd.Series([1.0, 2.0]), "no default kernels of single objects"),
        (np.zeros((2, 2, 2)), "two-dimensional"),
        ([[1.0, "a"]], "'a', at 0, 1. Pass a table with text as a data frame"),
        (pd.DataFrame({"day": pd.to_datetime(["2020-01-01"])}), "column 'day' .* holds dates"),
        (np.array([[1j]]), "Complex data not supported"),
        (np.ma.masked_array([[1.0, 2.0]], [[True, False]]), "masked entry at 0, 0"),
        (KernelStack.from_arrays([np.eye(2)]), 'pass it with kernels="precomputed"'),
    ],
)
def test_what_has_no_default(table, message):
    with pytest.raises(ValueError, match=message):
        auto_kernels(table)


def test_unknown_objects_are_left_to_the_kernel_of_categories():
    table = pd.DataFrame({"a": [("u", 1), ("v", 2)]})
    assert isinstance(dict(auto_kernels(table).kernels)["categories"], Categorical)


def test_a_dict_of_tables_is_refused():
    with pytest.raises(TypeError, match="kernels_for"):
        auto_kernels({"a": np.eye(3)})


def test_sparse_columns_of_a_frame_are_refused_with_a_way_out():
    matrix = sparse.random(12, 4, 0.3, format="csr", random_state=0)
    frame = pd.DataFrame.sparse.from_spmatrix(matrix)
    with pytest.raises(TypeError, match=r"sparse.to_coo\(\)"):
        auto_kernels(frame)
    assert auto_kernels(frame.sparse.to_coo()).kernels
    assert auto_kernels(frame.sparse.to_dense()).kernels


# -- texts that are no categories --------------------------------------------------------------


PRICES = RNG.uniform(1000, 9999, N_ROWS)


def written(form, values=PRICES):
    return [form(value) for value in values]


DAYS = pd.date_range("2020-01-01", periods=N_ROWS, freq="31h")
NO_CATEGORIES = {
    "CCO=N": (
        ["".join(RNG.choice(list("CNOc1=()"), 12)) for _ in range(N_ROWS)],
        r"is text, and 60 of 60 entries are different.*no categories.*Spectrum\(3\)\.on\('odd'\)"
        r".*\.after\(TfidfVectorizer\(\)\).*X\.drop\(columns='odd'\).*\.on\(columns\)",
    ),
    "name": (
        [f"P{i:03d}" for i in range(N_ROWS)],
        "is text, and 60 of 60 entries .* such as 'P000'",
    ),
    "45%": (written(lambda x: f"{x / 100:.0f}%"), r"holds percentages, such as .*to_numeric\(col"),
    "123,456": (written(lambda x: f"{100 * x:,.0f}"), "holds numbers with commas between thousa"),
    "1 234.5": (
        written(lambda x: f"{10 * x:,.1f}".replace(",", " ")),
        "holds numbers with spaces between thousands",
    ),
    "1 234,5": (
        written(lambda x: f"{x:,.1f}".translate({44: 32, 46: 44})),
        "holds numbers with a decimal comma",
    ),
    "1.234,5": (
        written(lambda x: f"{x:,.1f}".translate({44: 46, 46: 44})),
        r"holds numbers with a decimal comma.*decimal=','",
    ),
    "1'234.5": (
        written(lambda x: f"{10 * x:,.1f}".replace(",", "'")),
        r"holds numbers with apostrophes between thousands.*replace\(r\"\['’\]\"",
    ),
    "12.3 mg/l": (
        written(lambda x: f"{x:.1f} mg/l"),
        r"holds numbers with the unit 'mg/l'.*removesuffix\('mg/l'\)\.str\.strip\(\)",
    ),
    "$12.3": (written(lambda x: f"${x:.1f}"), r"holds numbers with the unit '\$'.*removeprefix"),
    "<0.5": (
        written(lambda x: f"<{x:.2f}" if x < 2000 else f"{x:.2f}"),
        "holds numbers with limits of a measurement, such as '<",
    ),
    "1.5": (written(lambda x: f"{x:.3f}"), r"holds plain numbers, .*as text.*pd\.to_numeric"),
    "2020-01-01": (written(lambda day: str(day.date()), DAYS[:25].repeat(2)), "holds dates, suc"),
    "01.02.2020": (written(lambda day: f"{day:%d.%m.%Y}", DAYS), r"holds dates.*pd\.to_datetime"),
    "Jan 1, 2020": (written(lambda day: f"{day:%b %d, %Y %H:%M}", DAYS), "holds dates, such as"),
    "0110": (
        ["".join(RNG.choice(["0", "1"], 64)) for _ in range(N_ROWS)],
        "holds strings of zeros and ones, .*for the kernel Jaccard",
    ),
}


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("kind", NO_CATEGORIES)
def test_texts_that_are_no_categories_are_named(kind, frame):
    entries, message = NO_CATEGORIES[kind]
    size = NUMBERS[: len(entries), 0]
    table = frame({"size": size, "odd": entries})
    with pytest.raises(ValueError, match=f"^column 'odd' {message}"):
        auto_kernels(table)
    with pytest.raises(ValueError, match=f"^view 'v': column 'odd' {message}"):
        MKFDA().fit({"v": table}, LABELS[: len(entries)])


@pytest.mark.parametrize("n_digits", [16, 19, 64])
def test_strings_of_bits_that_were_read_as_one_number_are_named(n_digits, tmp_path):
    rng = np.random.default_rng(0)
    texts = ["".join(rng.choice(["0", "1"], n_digits)) for _ in range(N_ROWS)]
    pd.DataFrame({"size": NUMBERS[:, 0], "bits": texts}).to_csv(tmp_path / "bits.csv", index=False)
    # pandas 2 leaves 64 digits as text.
    table = pd.read_csv(tmp_path / "bits.csv")
    kind = "strings of zeros and ones" if isinstance(table["bits"][0], str) else "numbers of zeros"
    with pytest.raises(ValueError, match=f"column 'bits' holds {kind}.*(dty|Convert it)"):
        auto_kernels(table)


CATEGORIES = {
    "postcodes": RNG.choice([f"{code:05d}" for code in range(25)], N_ROWS),
    "ranges": RNG.choice(["<1", "1-5", ">5"], N_ROWS),
    "called categories": pd.Categorical([f"P{i:03d}" for i in range(N_ROWS)]),
    "in pairs": [f"P{i // 2:03d}" for i in range(N_ROWS)],
}


@pytest.mark.parametrize("kind", CATEGORIES)
def test_texts_that_are_categories(kind):
    table = pd.DataFrame({"size": NUMBERS[:, 0], "odd": CATEGORIES[kind]})
    assert dict(auto_kernels(table).kernels)["categories"].columns == ["odd"]


def test_few_rows_may_all_have_different_categories():
    table = pd.DataFrame({"size": NUMBERS[:19, 0], "odd": [f"P{i}" for i in range(19)]})
    assert "categories" in names(table)


def test_powers_of_ten_are_numbers():
    assert names(10.0 ** np.random.default_rng(0).integers(0, 12, (N_ROWS, 2))) == DENSE
