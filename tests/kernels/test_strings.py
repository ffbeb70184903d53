"""Kernels of strings: against counts by hand, in every container, with what they refuse."""

from collections import Counter
from itertools import combinations, product

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import GridSearchCV, cross_val_score

from manykernels import MKFDA, MKSVC, Views
from manykernels.kernels import (
    RBF,
    Cosine,
    Gapped,
    KernelUnion,
    Linear,
    Mismatch,
    Spectrum,
    WeightedDegree,
    words,
)
from manykernels.kernels.words import Sequences
from tests.problems import slow

PROTEINS = ["MKVLAAGIVG", "MKKLLAAG", "GIVGIVGIV", "AAAAAAA", "WYWYMKVL"]
strings = st.lists(st.text("ABC", min_size=5, max_size=12), min_size=2, max_size=6)
aligned = st.lists(st.text("AB", min_size=7, max_size=7), min_size=2, max_size=6)


# -- by hand ---------------------------------------------------------------------------------


def windows(text, length):
    return [text[i : i + length] for i in range(len(text) - length + 1)]


def products(images, others=None):
    """Inner products of images, dicts from words to counts."""
    others = images if others is None else others
    return np.array([[sum(x[w] * z.get(w, 0) for w in x) for z in others] for x in images], float)


def spectrum(text, k):
    return Counter(windows(text, k))


def mismatch(text, k, m, alphabet):
    return {
        word: sum(
            sum(a != b for a, b in zip(word, found, strict=True)) <= m
            for found in windows(text, k)
        )
        for word in map("".join, product(alphabet, repeat=k))
    }


def gapped(text, k, g, decay=None):
    image = Counter()
    for window in windows(text, g):
        places = list(combinations(range(g), k))
        if decay is None:
            image.update({"".join(window[i] for i in some) for some in places})
            continue
        for some in places:
            image["".join(window[i] for i in some)] += decay ** (some[-1] - some[0] + 1 - k)
    return image


def weighted_degree(x, z, d):
    return sum(
        2 * (d - i + 1) / (d * (d + 1)) * (x[place : place + i] == z[place : place + i])
        for i in range(1, d + 1)
        for place in range(len(x) - i + 1)
    )


def normalized(K):
    lengths = np.sqrt(np.diagonal(K))
    return K / lengths / lengths[:, None]


@pytest.fixture(params=["all frequent", "all rare", "entered", "in stages"])
def way(request, monkeypatch):
    """Every way to count and to multiply, which give the same."""
    settings = {
        "all frequent": {"_FREQUENT": 0.0, "_DENSE_ENTRIES": 8, "_BLOCK_ROWS": 2},
        "all rare": {"_FREQUENT": 2.0, "_BLOCK_ROWS": 2},
        "entered": {"_FEW_WORDS": 0, "_WORDS_PER_OCCURRENCE": 0},
        "in stages": {"_FEW_WORDS": 0, "_WORDS_PER_OCCURRENCE": 0, "_LARGEST_WORD": 300},
    }
    for name, value in settings[request.param].items():
        monkeypatch.setattr(words, name, value)


def check(kernel, X, K):
    """Gram matrix, blocks and diagonal, exactly if they are whole numbers."""
    kernel = clone(kernel).set_params(normalize=False).fit(X)
    assert_allclose(kernel(X), K, rtol=1e-14, atol=1e-14)
    assert_allclose(kernel(X[:1], X), K[:1], rtol=1e-14, atol=1e-14)
    assert_allclose(kernel(X, X[1:]), K[:, 1:], rtol=1e-14, atol=1e-14)
    assert_allclose(kernel.diag(X), np.diagonal(K), rtol=1e-14)
    kernel.set_params(normalize=True)
    assert_allclose(kernel(X), normalized(K), rtol=1e-13, atol=1e-14)
    assert_allclose(kernel(X[1:], X), normalized(K)[1:], rtol=1e-13, atol=1e-14)
    assert_array_equal(kernel.diag(X), np.ones(len(X)))


def expected(kernel, X):
    """The kernel before it is normalised, by hand."""
    if isinstance(kernel, WeightedDegree):
        return np.array([[weighted_degree(x, z, kernel.d) for z in X] for x in X])
    if isinstance(kernel, Mismatch):
        return products([mismatch(x, kernel.k, kernel.m, kernel.alphabet) for x in X])
    if isinstance(kernel, Gapped):
        return products([gapped(x, kernel.k, kernel.g, kernel.decay) for x in X])
    return products([spectrum(x, kernel.k) for x in X])


BY_HAND = {
    **{f"spectrum({k})": Spectrum(k) for k in (1, 2, 5)},
    **{
        f"mismatch({k}, {m})": Mismatch(k, m, alphabet="ABCD")
        for k, m in ((1, 0), (2, 1), (3, 1), (4, 1), (3, 2), (4, 2))
    },
    **{
        f"gapped({k}, {g}, {decay})": Gapped(k, g, decay)
        for k, g in ((1, 1), (2, 2), (1, 3), (2, 4), (3, 5))
        for decay in (None, 0.5, 1.0)
    },
    **{f"weighted-degree({d})": WeightedDegree(d) for d in (1, 3, 7)},
}
RANDOM = ["".join(row) for row in np.random.default_rng(3).choice(list("ABC"), (5, 7))]


@pytest.mark.parametrize("name", BY_HAND)
def test_against_counts_by_hand(name):
    kernel = BY_HAND[name]
    check(kernel, RANDOM, expected(kernel, RANDOM))


some_of_each = pytest.mark.parametrize(
    "name", ["spectrum(2)", "mismatch(3, 1)", *slow("gapped(2, 4, None)"), "gapped(3, 5, 0.5)"]
)


@pytest.mark.usefixtures("way")
@some_of_each
def test_all_ways_to_count_and_to_multiply(name):
    kernel = BY_HAND[name]
    check(kernel, RANDOM, expected(kernel, RANDOM))


@pytest.mark.usefixtures("way")
def test_all_ways_to_count_placed_words():
    check(WeightedDegree(5), RANDOM, expected(WeightedDegree(5), RANDOM))


@some_of_each
@settings(max_examples=10)
@given(X=strings)
def test_any_strings_against_counts_by_hand(name, X):
    kernel = BY_HAND[name]
    check(kernel, X, expected(kernel, X))


@settings(max_examples=10)
@given(X=aligned)
def test_any_aligned_strings_against_sums_by_hand(X):
    check(WeightedDegree(3), X, expected(WeightedDegree(3), X))


def test_letters_of_training():
    assert Spectrum(2).fit(PROTEINS).letters_ == "AGIKLMVWY"
    assert Spectrum(2, alphabet="TGCA").fit(["AC"]).letters_ == "ACGT"


def test_equal_kernels():
    """Limit cases, as the papers have them."""
    assert_array_equal(Mismatch(3, 0, alphabet="protein")(PROTEINS), Spectrum(3)(PROTEINS))
    assert_array_equal(Gapped(3, 3)(PROTEINS), Spectrum(3)(PROTEINS))
    counts = CountVectorizer(analyzer="char", ngram_range=(2, 2), lowercase=False)
    assert_allclose(
        Cosine().after(counts).fit(PROTEINS)(PROTEINS), Spectrum(2)(PROTEINS), rtol=1e-14
    )


def test_gapped_without_decay_of_gaps_counts_every_place():
    assert Gapped(2, 3, normalize=False)(["AAA"]) == 1.0
    assert Gapped(2, 3, decay=1.0, normalize=False)(["AAA"]) == 9.0


@pytest.mark.parametrize("k", [9, 14, 15, 40])
def test_long_words(k):
    """More words than a number of 64 bits can tell apart."""
    rng = np.random.default_rng(0)
    core = "".join(rng.choice(list("ACDEFGHIKLMNPQRSTVWY"), 50))
    X = [core, core[5:] + "ACDEF", core[::-1], core[:45]]
    check(Spectrum(k), X, products([spectrum(x, k) for x in X]))


def test_long_strings_of_one_letter_are_counted_exactly():
    """Counts whose products single precision cannot tell apart."""
    X = ["A" * 4100, "A" * 4099, "AB" * 2050]
    check(Spectrum(1), X, products([spectrum(x, 1) for x in X]))


def test_any_letters():
    X = ["αβγα", "αβ🧬γ", "abcα", "a\0b\0"]
    check(Spectrum(2), X, products([spectrum(x, 2) for x in X]))
    check(Gapped(2, 3), X, products([gapped(x, 2, 3) for x in X]))


# -- letters that training had not -----------------------------------------------------------

KINDS = [Spectrum(2), Mismatch(2, 1), Gapped(2, 3), WeightedDegree(2)]
every_kind = pytest.mark.parametrize("kernel", KINDS, ids=lambda kernel: type(kernel).__name__)


@every_kind
def test_new_letters_match_nothing_of_training(kernel):
    train, new = ["ABAB", "BBAA"], ["XYXY", "XYZZ", "ABXY"]
    kernel = clone(kernel).set_params(normalize=False).fit(train)
    assert_array_equal(kernel(new, train)[:2], np.zeros((2, 2)))
    K = kernel(new)
    assert (np.diagonal(K) > 0).all()
    assert K[0, 1] > 0
    assert_allclose(kernel.diag(new), np.diagonal(K))
    assert np.linalg.eigvalsh(kernel(train + new))[0] > -1e-12
    assert_allclose(kernel(train + new)[2:, :2], kernel(new, train))
    kernel.set_params(normalize=True)
    assert_allclose(np.diagonal(kernel(train + new)), 1.0)


def test_mismatch_takes_the_number_of_letters_from_training():
    kernel = Mismatch(2, 1, normalize=False).fit(["ABC", "CAB"])
    assert kernel.letters_ == "ABC"
    given = Mismatch(2, 1, alphabet="ABC", normalize=False)
    assert_array_equal(kernel(["AAB", "BAB"]), given(["AAB", "BAB"]))
    assert not np.array_equal(kernel(["AAB"]), Mismatch(2, 1, alphabet="ABCD")(["AAB"]))
    with pytest.raises(NotFittedError, match="takes its letters from training strings"):
        Mismatch(2, 1)(["AAB"])


# -- alphabets -------------------------------------------------------------------------------


@every_kind
def test_letters_of_no_alphabet_are_named(kernel):
    kernel = clone(kernel).set_params(alphabet="dna")
    with pytest.raises(ValueError, match=r"row 1 has the letter 'N' at position 2.*'ACGT'.*skip"):
        kernel.fit(["ACGT", "ACNT"])
    with pytest.raises(ValueError, match=r"row 0 has the letter 'a' at .* 0.*X\.str\.upper\(\)"):
        kernel.fit(["acgt", "ACGT"])
    kernel.fit(["ACGT", "AAAA"])
    with pytest.raises(ValueError, match=r"Y: row 0 has the letter 'X'"):
        kernel(["ACGT"], ["AAXA"])


@every_kind
def test_words_with_unknown_letters_are_left_out(kernel):
    kernel = clone(kernel).set_params(alphabet="dna", unknown="skip", normalize=False)
    X = ["ACGTNACGG", "ACGTACGTA", "AAAANNNNN"]
    if not isinstance(kernel, WeightedDegree):
        # A string with an unknown letter has the words of its two parts.
        parts = kernel(["ACGT", "ACGG"])
        K = kernel.fit(X)(X)
        assert K[0, 0] == parts.sum()
        with pytest.raises(ValueError, match=r"row 0 \('ANANAN'\) has no . letters in a row"):
            kernel(["ANANAN"])
    else:
        assert kernel(["AN", "AN"])[0, 0] == kernel(["AC", "AG"])[0, 1]
        with pytest.raises(ValueError, match="has no 1 letters in a row"):
            kernel(["AC", "NN"])


@pytest.mark.parametrize("alphabet", ["", "A", "ACGA"])
def test_alphabets_have_letters_that_differ(alphabet):
    with pytest.raises(ValueError, match="two or more different letters"):
        Spectrum(2, alphabet=alphabet).fit(["AC"])


# -- what is refused -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kernel", "X", "error", "message"),
    [
        (Spectrum(3), ["ABCD", "AB"], ValueError, r"row 1 is 'AB', 2 letters, but k=3 needs at l"),
        (Mismatch(3), ["ABCD", ""], ValueError, "row 1 is an empty string, but k=3 needs"),
        (Gapped(2, 4), ["ABCD", "ABC"], ValueError, r"row 1 is 'ABC', 3 .* g=4 .*\(1 of 2 rows"),
        (WeightedDegree(2), ["ABCD", "ABC"], ValueError, "row 1 has 3 letters, others have 4"),
        (WeightedDegree(5), ["ABCD", "ABCD"], ValueError, "d=5 is more than the 4 letters"),
        (Spectrum(), ["ABCD", None], ValueError, "missing value .* at row 1"),
        (Spectrum(), ["ABCD", float("nan")], ValueError, "missing value .* at row 1"),
        (Spectrum(), pd.Series(["ABCD", pd.NA]), ValueError, "missing value .* at row 1"),
        (Spectrum(), ["ABCD", b"ABCD"], TypeError, r"row 1 is b'ABCD': pass entry.decode\(\)"),
        (Spectrum(), [["ABCD", "ABCD"]], ValueError, r"there are 2 columns: choose one"),
        (Spectrum(), np.ones((3, 1)), TypeError, "compares strings, but row 0 is "),
        (Spectrum(), [], ValueError, r"Found array with 0 sample\(s\)"),
        (Mismatch(2, 2), ["ABCD"], ValueError, "m=2 must be less than the number of letters"),
        (Mismatch(20, 6), ["A" * 20], ValueError, "needs 910596 kinds of words, more than 1000"),
        (Gapped(3, 2), ["ABCD"], ValueError, "g=2 letters are shorter than k=3"),
        (Gapped(7, 14), ["A" * 20], ValueError, "3432 kinds of words, more than 1000"),
        (Spectrum(0), ["ABCD"], ValueError, "'k' parameter"),
        (Gapped(2, 3, 0.0), ["ABCD"], ValueError, "'decay' parameter"),
    ],
)
def test_what_is_refused(kernel, X, error, message):
    with pytest.raises(error, match=message):
        kernel.fit(X)


def test_strings_of_another_length_are_refused():
    kernel = WeightedDegree(2)
    with pytest.raises(ValueError, match="strings of X have 3 letters, those of Y 4"):
        kernel(["ABC"], ["ABCD"])
    with pytest.raises(ValueError, match="row 0 has 3 letters, others have 4"):
        kernel.fit(["ABCD"])(["ABC"])
    assert kernel.fit(["ABC"]).length_ == 3


# -- containers ------------------------------------------------------------------------------

CONTAINERS = {
    "list": list,
    "tuple": tuple,
    "array": np.array,
    "objects": lambda X: np.array(X, dtype=object),
    "column": lambda X: np.array(X)[:, None],
    "series": lambda X: pd.Series(X, index=[f"P{i}" for i in range(len(X))]),
    "string series": lambda X: pd.Series(X, dtype="string"),
    "polars": pl.Series,
    "frame": lambda X: pd.DataFrame({"s": X}),
    "polars frame": lambda X: pl.DataFrame({"s": X}),
}
every_container = pytest.mark.parametrize("container", CONTAINERS)


@every_container
def test_containers(container):
    X = CONTAINERS[container](PROTEINS)
    expected = Spectrum(2)(PROTEINS)
    assert_array_equal(Spectrum(2).fit(X)(X), expected)
    union = KernelUnion({"a": Spectrum(2), "b": Gapped(2, 3)}).fit(X)
    assert_allclose(union(X).kernel(0), expected, rtol=1e-15)
    assert_array_equal(Linear().after(Lengths()).fit(X)(X)[0], 10.0 * np.array([10, 8, 9, 7, 8]))


class Lengths(CountVectorizer):
    """A transformer of texts: their numbers of letters."""

    def fit(self, raw_documents, y=None):
        return self

    def transform(self, raw_documents):
        return np.array([[len(text)] for text in raw_documents])


def motifs(n=60, seed=0):
    """Random DNA, half of it with a motif, and the classes."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    parts = ["".join(row) for row in rng.choice(list("ACGT"), (n, 36))]
    inside = [
        part[:at] + ("GATTACA" if one else "") + part[at:]
        for part, at, one in zip(parts, rng.integers(0, 36, n), y, strict=True)
    ]
    return inside, np.array(["plain", "motif"])[y]


@every_container
@pytest.mark.parametrize("model", [MKFDA(), *slow(MKSVC())], ids=["fda", "svc"])
def test_estimators_take_every_container(container, model):
    texts, y = motifs(30)
    reference = clone(model).fit(texts, y)
    X = CONTAINERS[container](texts)
    model = clone(model).fit(X, y)
    assert model.union_.names_ == ["spectrum(1)", "spectrum(2)", "spectrum(3)"]
    assert_allclose(model.decision_function(X), reference.decision_function(texts))
    assert model.n_features_in_ == 1
    assert_array_equal(
        model.predict(CONTAINERS[container](texts[:3])), reference.predict(texts[:3])
    )


def test_searches_cut_lists_of_strings():
    texts, y = motifs()
    model = MKFDA({"words": Spectrum(1), "gapped": Gapped(2, 3)})
    search = GridSearchCV(model, {"kernels__words__k": [1, 4]}, cv=3).fit(texts, y)
    assert search.best_params_ == {"kernels__words__k": 4}
    assert cross_val_score(search.best_estimator_, pd.Series(texts), y, cv=3).mean() > 0.85


def test_a_column_of_a_table_and_a_view():
    texts, y = motifs(30)
    numbers = np.random.default_rng(1).normal(size=(30, 2))
    labels = [f"P{i}" for i in range(30)]
    frame = pd.DataFrame(numbers, columns=["a", "b"], index=labels).assign(gene=texts)
    by_column = MKFDA({"gene": Spectrum(3).on("gene"), "numbers": RBF().on(["a", "b"])})
    by_column.fit(frame, y)
    views = Views(
        {
            "gene": pd.Series(texts, index=labels),
            "numbers": frame[["a", "b"]].sample(frac=1, random_state=0),
        }
    )
    by_view = MKFDA({"gene": Spectrum(3), "numbers": RBF()}).fit(views, y)
    assert_allclose(by_view.decision_function(views), by_column.decision_function(frame))
    assert_allclose(
        by_view.decision_function({"gene": texts[:4], "numbers": numbers[:4]}),
        by_column.decision_function(frame.iloc[:4]),
    )


@pytest.mark.parametrize("nothing", [None, float("nan")])
def test_samples_may_lack_a_string(nothing):
    texts, y = motifs(30)
    texts[4] = nothing
    numbers = np.random.default_rng(1).normal(size=(30, 2))
    views = {"gene": texts, "numbers": numbers}
    model = MKFDA({"gene": Spectrum(2), "numbers": "linear"}, missing="mean").fit(views, y)
    assert np.isfinite(model.decision_function(views)).all()
    with pytest.raises(ValueError, match=r"view 'gene' is missing for 1 of 30 samples \(rows 4\)"):
        MKFDA({"gene": Spectrum(2), "numbers": "linear"}).fit(views, y)
    with pytest.raises(ValueError, match=r"all its columns are missing .* rows 4"):
        MKFDA(Spectrum(2)).fit(texts, y)


def test_kernels_of_numbers_refuse_strings():
    texts, y = motifs(10)
    with pytest.raises(ValueError, match="does not hold numbers only"):
        MKFDA(RBF()).fit(texts, y)
    with pytest.raises(ValueError, match="held numbers in training, and holds text now"):
        MKFDA().fit(np.ones((10, 1)) * np.arange(10)[:, None], y).predict(texts)


def test_a_column_of_texts_that_stand_for_numbers_holds_numbers():
    X = np.arange(12.0)[:, None]
    y = np.arange(12) > 5
    as_text = X.astype(str)
    assert_allclose(
        MKFDA("linear").fit(as_text, y).decision_function(as_text),
        MKFDA("linear").fit(X, y).decision_function(X),
    )


# -- sequences -------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [slice(1, 3), [3, 0, 3], np.array([1, 0, 0, 1, 1], dtype=bool)])
def test_some_of_the_strings(rows):
    chosen = np.array(PROTEINS, dtype=object)[rows]
    part = Sequences.of(PROTEINS)[rows]
    assert part.codes.tobytes().decode("ascii") == "".join(chosen)
    assert part.lengths.tolist() == [len(text) for text in chosen]
    assert_array_equal(Sequences.of(list(chosen)).codes, part.codes)


def test_training_strings_are_counted_once():
    """For all blocks of new strings; counts of these, and of Gram matrices, are not kept."""
    train, new = Sequences.of(PROTEINS), Sequences.of(PROTEINS[:2])
    kernel = Spectrum(2)
    ((_, term),) = kernel._terms()
    kernel._evaluate(train, None)
    assert not train.has(term)
    kernel._evaluate(new, train)
    assert train.has(term)
    assert not new.has(term)
    assert words.Counts.of(term, train) is words.Counts.of(term, train)
    assert kernel._squares(train) is kernel._squares(train)


def test_kernels_by_columns():
    texts, y = motifs(40)
    kernels = [Spectrum(2), Spectrum(3)]
    by_columns = MKSVC(kernels, solver="interleaved").fit(texts, y)
    whole = MKSVC(kernels).fit(texts, y)
    assert_allclose(by_columns.weights_, whole.weights_, atol=0.02)
