"""Kernels with preprocessing of their own."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.manifold import TSNE
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    Normalizer,
    OneHotEncoder,
    StandardScaler,
)
from sklearn.random_projection import GaussianRandomProjection

from manykernels.kernels import (
    RBF,
    Categorical,
    ChiSquare,
    Cosine,
    KernelUnion,
    Laplacian,
    Linear,
    kernels_for,
)
from manykernels.kernels.base import SquaredDistances
from manykernels.kernels.composition import After
from manykernels.kernels.on_demand import StreamedKernels

RNG = np.random.default_rng(0)
VALUES = RNG.gamma(1.0, size=(10, 4)) * [1.0, 10.0, 100.0, 1000.0]
NAMES = list("abcd")
MIXED = {"a": VALUES[:, 0], "cat": list("uvwuvwuvwu"), "b": VALUES[:, 1]}
TRAIN, TEST = slice(0, 6), slice(6, 10)


# -- what it computes ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "transformer",
    [StandardScaler(), PCA(2), make_pipeline(StandardScaler(), PCA(2)), MaxAbsScaler()],
    ids=lambda transformer: type(transformer).__name__,
)
@pytest.mark.parametrize(
    "kernel",
    [RBF(), ChiSquare(gamma="median").after(FunctionTransformer(np.abs)), Linear() * 2],
    ids=["rbf", "chi-square", "product"],
)
def test_the_kernel_of_what_the_transformer_makes(kernel, transformer):
    after = kernel.after(transformer).fit(VALUES[TRAIN])
    learnt = clone(transformer).fit(VALUES[TRAIN])
    plain = clone(kernel).fit(learnt.transform(VALUES[TRAIN]))
    expected = plain(learnt.transform(VALUES[TEST]), learnt.transform(VALUES))
    assert_array_equal(after(VALUES[TEST], VALUES), expected)
    assert_array_equal(after.diag(VALUES), plain.diag(learnt.transform(VALUES)))
    assert after.is_psd


@pytest.mark.parametrize(
    "convert",
    [
        np.asarray,
        np.ndarray.tolist,
        sparse.csr_array,
        sparse.csc_matrix,
        lambda X: pd.DataFrame(X, columns=NAMES),
        lambda X: pl.DataFrame(X, schema=NAMES),
    ],
)
def test_every_container(convert):
    X = convert(VALUES)
    scaled = VALUES[:, [3, 1]] / VALUES[:, [3, 1]].max(axis=0)
    kernel = RBF(1.0).on([3, 1]).after(MaxAbsScaler()).fit(X)
    assert_allclose(kernel(X), RBF(1.0)(scaled), rtol=1e-12)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_text_reaches_the_transformer(frame):
    X = frame(MIXED)
    encoder = make_column_transformer((StandardScaler(), ["a"]), (OneHotEncoder(), ["cat"]))
    kernel = RBF(1.0).on(["a", "cat"]).after(encoder).fit(X)
    same = np.equal.outer(MIXED["cat"], MIXED["cat"])
    distances = np.subtract.outer(VALUES[:, 0], VALUES[:, 0]) ** 2 / VALUES[:, 0].var()
    assert_allclose(kernel(X), np.exp(-distances - 2 * ~same), rtol=1e-10)


def test_missing_values_reach_the_transformer():
    X = VALUES.copy()
    X[0, 0] = np.nan
    filled = np.where(np.isnan(X), np.nanmean(X[:, 0]), X)
    kernel = Linear().after(SimpleImputer()).fit(X)
    assert_allclose(kernel(X), Linear()(filled))


def test_text_may_reach_a_kernel_that_takes_it():
    bins = KBinsDiscretizer(2, encode="ordinal", strategy="uniform")
    words = make_pipeline(bins, FunctionTransformer(lambda X: np.where(X > 0, "high", "low")))
    expected = Categorical()(bins.fit_transform(VALUES))
    assert_array_equal(Categorical().after(words).fit(VALUES)(VALUES), expected)


def test_the_last_named_comes_first():
    logarithm, double = FunctionTransformer(np.log), FunctionTransformer(lambda X: 2 * X)
    kernel = Linear().on([0]).after(logarithm).after(double).fit(VALUES)
    assert kernel.columns == [0]
    assert_array_equal(kernel(VALUES), Linear()(np.log(2 * VALUES[:, [0]])))


@pytest.mark.parametrize("convert", [np.array, sparse.csr_array, pd.DataFrame])
def test_transformers_that_work_in_place_leave_the_table_alone(convert):
    X = convert(VALUES)
    kernel = Linear().after(MaxAbsScaler(copy=False)).fit(X)
    for _ in range(2):
        assert_allclose(kernel(X), Linear()(VALUES / VALUES.max(axis=0)), rtol=1e-12)
    assert_array_equal(X.toarray() if sparse.issparse(X) else X, VALUES)


# -- columns ---------------------------------------------------------------------------------


def test_columns_before_or_after():
    before = RBF().on(["a"]).after(StandardScaler())
    afterwards = RBF().after(StandardScaler()).on(["a"])
    expected = "After(columns=['a'], kernel=RBF(), transformer=StandardScaler())"
    assert repr(before) == repr(afterwards) == expected


def test_columns_of_parts_are_those_of_the_output():
    scaler = StandardScaler().set_output(transform="pandas")
    kernel = (RBF(1.0).on("a") + Linear().on("b")).on(["b", "a"]).after(scaler)
    X = pd.DataFrame(VALUES, columns=NAMES)
    scaled = StandardScaler().fit_transform(VALUES)
    expected = RBF(1.0)(scaled[:, [0]]) + Linear()(scaled[:, [1]])
    assert_allclose(kernel.fit(X)(X), expected, rtol=1e-12)


def test_in_sums_and_products():
    X = pd.DataFrame(MIXED)
    scaled = Linear().on(["a"]).after(StandardScaler())
    kernel = (scaled + Categorical().on("cat")) * 2.0
    expected = 2 * (clone(scaled).fit(X)(X) + Categorical()(X[["cat"]]))
    assert_array_equal(kernel.fit(X)(X), expected)


def test_in_views():
    X = {"u": VALUES, "v": -VALUES}
    union = kernels_for(X, Linear().after(StandardScaler()))
    K = union.fit(X)(X).data
    assert_allclose(K[0], K[1])
    assert_allclose(K[0], Linear()(StandardScaler().fit_transform(VALUES)))


# -- fitting ---------------------------------------------------------------------------------


def test_nothing_is_learnt_by_what_is_passed():
    scaler, rbf = StandardScaler(), RBF(gamma="median")
    kernel = rbf.after(scaler).fit(VALUES)
    assert not hasattr(scaler, "mean_")
    assert not hasattr(rbf, "gamma_")
    assert not hasattr(kernel.kernel, "gamma_")
    assert not hasattr(kernel.transformer, "mean_")
    kernel.set_params(transformer__with_mean=False)
    assert scaler.with_mean


def test_pickle_and_clone():
    kernel = RBF().on([1, 2]).after(make_pipeline(StandardScaler(), PCA(1))).fit(VALUES)
    assert_array_equal(pickle.loads(pickle.dumps(kernel))(VALUES), kernel(VALUES))
    assert_array_equal(clone(kernel).fit(VALUES)(VALUES), kernel(VALUES))


@pytest.mark.parametrize("transformer", [StandardScaler(), make_pipeline(StandardScaler())])
@pytest.mark.parametrize("convert", [np.asarray, pd.DataFrame, pl.DataFrame])
def test_rows_of_weight_zero_are_never_seen(transformer, convert):
    X, weights = convert(VALUES), np.repeat([1.0, 0.0], [6, 4])
    weighted = RBF().after(transformer).fit(X, sample_weight=weights)
    assert_array_equal(weighted(X), RBF().after(transformer).fit(X[TRAIN])(X))


def test_weights_go_to_transformers_that_take_them():
    weights = np.arange(1.0, 11.0)
    kernel = Linear().after(StandardScaler()).fit(VALUES, sample_weight=weights)
    assert_allclose(kernel.transformer_.mean_, weights @ VALUES / weights.sum())
    scaled = Linear().after(MaxAbsScaler()).fit(VALUES, sample_weight=weights)
    assert_array_equal(scaled(VALUES), Linear().after(MaxAbsScaler()).fit(VALUES)(VALUES))


# -- shared distances ------------------------------------------------------------------------


def counted_distances(monkeypatch, kernels, X=VALUES):
    """How often distances are computed for the kernels, which are compared one by one, too."""
    union = KernelUnion([(str(j), kernel) for j, kernel in enumerate(kernels)]).fit(X)
    expected = [kernel(X) for _, kernel in union.kernels_]
    calls = []

    class Counted(SquaredDistances):
        def tile(self, rows, columns):
            calls.append((rows, columns))
            return super().tile(rows, columns)

    monkeypatch.setattr(RBF, "_comparison", Counted)
    assert_allclose(union(X).data, expected, rtol=1e-9)
    return len(calls)


def test_equal_transformers_share_distances(monkeypatch):
    kernels = [RBF(width=w).on(slice(2)).after(StandardScaler()) for w in (1.0, 2.0)]
    kernels.append(RBF(gamma="median").on([0, 1]).after(StandardScaler()))
    assert counted_distances(monkeypatch, kernels) == 1


@pytest.mark.parametrize(
    "other",
    [
        RBF(width=2.0).on([0, 1]),
        RBF(width=2.0).on([0, 2]).after(StandardScaler()),
        RBF(width=2.0).on([0, 1]).after(StandardScaler(with_mean=False)),
        RBF(width=2.0).on([0, 1]).after(PCA()),
        After(RBF(columns=[0]), StandardScaler(), columns=[0, 1]),
    ],
    ids=repr,
)
def test_different_transformers_do_not_share(monkeypatch, other):
    first = RBF().on([0, 1]).after(StandardScaler())
    assert counted_distances(monkeypatch, [first, other]) == 2


@pytest.mark.parametrize(
    "transformer",
    [GaussianRandomProjection(2), FunctionTransformer(lambda X: X[:, :2])],
    ids=["random", "not-picklable"],
)
def test_transformers_in_doubt_do_not_share(monkeypatch, transformer):
    kernels = [RBF(width=w).after(transformer) for w in (1.0, 2.0)]
    assert counted_distances(monkeypatch, kernels) == 2


def test_streamed():
    X = pd.DataFrame(MIXED)
    kernels = [RBF(width=w).on(["a", "b"]).after(StandardScaler()) for w in (1.0, 2.0)]
    union = KernelUnion({"one": kernels[0], "two": kernels[1], "cat": Categorical().on("cat")})
    streamed = StreamedKernels(union.fit(X), X)
    for j in range(3):
        assert_allclose(streamed.kernel(j), union(X).data[j], rtol=1e-12)


# -- errors ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("transformer", "message"),
    [
        (StandardScaler, "is a class, not an instance"),
        (LogisticRegression(), r"LogisticRegression\(\) has no transform"),
        (TSNE(), r"TSNE\(.*\) has no transform"),
        (make_pipeline(StandardScaler(), LogisticRegression()), r"\)\]\) has no transform"),
        ("scale", "'scale' has no fit"),
        (None, "None has no fit"),
        (np.log, "has no fit"),
    ],
)
def test_no_transformer(transformer, message):
    with pytest.raises(TypeError, match=rf"(?s)RBF\.after: .*{message}.*StandardScaler\(\)"):
        RBF().after(transformer).fit(VALUES)


class DropsARow(TransformerMixin, BaseEstimator):
    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return X[1:]


def returning(value):
    return FunctionTransformer(lambda X: np.full((len(X), 2), value))


@pytest.mark.parametrize(
    ("transformer", "error", "message"),
    [
        (DropsARow(), ValueError, "RBF after DropsARow: .* returned 9 rows for 10"),
        (returning("word"), ValueError, "RBF after FunctionTransformer, output .*RBF: .*'word'"),
        (returning(np.nan), ValueError, "RBF after FunctionTransformer, output .*NaN"),
        (returning(np.inf), ValueError, "RBF after FunctionTransformer, output .*infinite"),
        (returning(1j), ValueError, "RBF after FunctionTransformer, output .*Complex"),
        (PCA(5), ValueError, "RBF after PCA: n_components=5"),
        (SelectKBest(k=2), ValueError, "RBF after SelectKBest: .*requires y"),
    ],
)
def test_transformers_that_do_not_fit(transformer, error, message):
    with pytest.raises(error, match=message):
        RBF().after(transformer).fit(VALUES)
    with pytest.raises(error, match=f"kernel 'mine': {message}"):
        KernelUnion({"mine": RBF().after(transformer)}).fit(VALUES)


def test_other_errors_name_the_kernel():
    kernel = RBF().on(["a", "cat"]).after(StandardScaler())
    with pytest.raises(ValueError, match="RBF after StandardScaler: X: column 'cat' "):
        kernel.fit(pd.DataFrame(MIXED))
    with pytest.raises(ValueError, match=r"RBF after StandardScaler: columns=\['a', 'cat'\]"):
        kernel.fit(VALUES)
    with pytest.raises(ValueError, match="RBF after StandardScaler: X has a masked entry"):
        kernel.on(None).fit(np.ma.masked_greater(VALUES, 1000.0))
    with pytest.raises(ValueError, match=r"RBF after StandardScaler: .*two-dimensional X"):
        kernel.on(None).fit([1.0, 2.0])


def test_calling_before_fit():
    kernel = Laplacian(1.0).after(StandardScaler())
    for call in (kernel, kernel.diag):
        with pytest.raises(NotFittedError, match=r"Laplacian after StandardScaler: .* call fit"):
            call(VALUES)


def test_only_kernels_come_after():
    with pytest.raises(ValueError, match="'kernel' parameter of After must be an instance of"):
        After("rbf", StandardScaler()).fit(VALUES)


# -- texts -------------------------------------------------------------------------------------

TEXTS = ["red wine", "white wine", "red brick", "a brick"]


@pytest.mark.parametrize(
    "X",
    [
        TEXTS,
        np.array(TEXTS),
        np.array(TEXTS, dtype=object),
        np.array(TEXTS, dtype=object)[:, None],
        pd.DataFrame({"text": TEXTS}),
        pd.Series(TEXTS),
    ],
    ids=["list", "array", "objects", "column", "frame", "series"],
)
@pytest.mark.parametrize("more", [[], [Normalizer()]], ids=["alone", "pipeline"])
def test_texts_reach_a_vectorizer_one_by_one(X, more):
    kernel = Cosine().after(make_pipeline(TfidfVectorizer(), *more) if more else TfidfVectorizer())
    expected = Cosine()(TfidfVectorizer().fit_transform(TEXTS))
    assert_allclose(kernel.fit(X)(X), expected)
    assert_allclose(kernel.fit(X).diag(X), 1.0)


def test_a_vectorizer_takes_one_column_of_texts():
    frame = pd.DataFrame({"text": TEXTS, "n": range(4)})
    kernel = Cosine().after(TfidfVectorizer())
    assert_allclose(kernel.on("text").fit(frame)(frame), kernel.fit(TEXTS)(TEXTS))
    with pytest.raises(ValueError, match=r"Cosine after TfidfVectorizer.*2 columns: choose one"):
        kernel.fit(frame)
    with pytest.raises(ValueError, match="needs texts, but row 1 is None"):
        kernel.fit(["a text", None])


@pytest.mark.parametrize(
    ("wrong", "words"),
    [("x", "column 'b' .* does not hold numbers"), (pd.Timestamp("2020"), "column 'b' .* dates")],
)
def test_the_column_that_a_transformer_cannot_take_is_named(wrong, words):
    X = pd.DataFrame({"a": [1.0, 2.0, 4.0], "b": [3.0, 5.0, 0.0]})
    kernel = RBF().after(StandardScaler())
    fitted = kernel.fit(X)
    with pytest.raises((TypeError, ValueError), match=words):
        fitted(X.assign(b=wrong), X)
    with pytest.raises((TypeError, ValueError), match=words):
        RBF().after(StandardScaler()).fit(X.assign(b=wrong))


def test_columns_of_one_name_are_named():
    X = pd.DataFrame(np.eye(3), columns=["a", "b", "a"])
    with pytest.raises(ValueError, match="several columns are called 'a'"):
        RBF().after(StandardScaler()).fit(X)
