"""Tables of numbers, categories and fingerprints, each with a kernel of its own."""

import pickle
from typing import ClassVar

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from manykernels import MKFDA, MKFDACV, MKSVC, MKSVR, KernelUnion
from manykernels.kernels import RBF, Categorical, Jaccard, Linear
from tests.problems import slow

N_ROWS = 150
TRAIN, TEST = slice(0, 100), slice(100, N_ROWS)
RNG = np.random.default_rng(0)
NUMBERS = RNG.normal(size=(N_ROWS, 2)) * [1.0, 1e4] + [0.0, 1e6]
COLOUR = RNG.choice(["red", "green", "blue"], size=N_ROWS)
BITS = RNG.integers(2, size=(N_ROWS, 4))
score = NUMBERS[:, 0] + (COLOUR == "red") + BITS[:, 0] - BITS[:, 1]
y = np.where(score > np.median(score), "yes", "no")
COLUMNS = {
    **dict(zip(["age", "income"], NUMBERS.T, strict=True)),
    "colour": COLOUR,
    **{f"bit{j}": BITS[:, j] for j in range(4)},
}
X = pd.DataFrame(COLUMNS)
KERNELS = [
    ("numbers", RBF().on(["age", "income"]).after(StandardScaler())),
    ("colour", Categorical().on("colour")),
    ("bits", Jaccard().on([f"bit{j}" for j in range(4)])),
]
estimators = pytest.mark.parametrize("estimator", [MKFDA, MKSVC])


@estimators
@pytest.mark.parametrize("kernels", [KERNELS, *slow(dict(KERNELS), KernelUnion(KERNELS))])
def test_a_mixed_frame(estimator, kernels):
    model = estimator(kernels).fit(X[TRAIN], y[TRAIN])
    assert set(model.predict(X[TEST])) <= {"yes", "no"}
    assert model.score(X[TEST], y[TEST]) > 0.7
    copy = pickle.loads(pickle.dumps(model))
    assert_array_equal(copy.decision_function(X), model.decision_function(X))


@estimators
def test_pandas_and_polars_agree(estimator):
    pandas = estimator(KERNELS).fit(X, y)
    polars = estimator(KERNELS).fit(pl.DataFrame(COLUMNS), y)
    assert_allclose(polars.decision_function(pl.DataFrame(COLUMNS)), pandas.decision_function(X))


@estimators
def test_the_same_as_columns_prepared_by_hand(estimator):
    scaler = StandardScaler().fit(NUMBERS[TRAIN])
    scaled = X.assign(**dict(zip(["age", "income"], scaler.transform(NUMBERS).T, strict=True)))
    plain = [("numbers", RBF().on(["age", "income"])), *KERNELS[1:]]
    expected = estimator(plain).fit(scaled[TRAIN], y[TRAIN]).decision_function(scaled)
    outputs = estimator(KERNELS).fit(X[TRAIN], y[TRAIN]).decision_function(X)
    assert_allclose(outputs, expected, rtol=1e-7)


@pytest.mark.slow
@estimators
@pytest.mark.parametrize("kernels", [KERNELS, dict(KERNELS), KernelUnion(KERNELS)])
def test_parameters_of_transformers_in_a_grid_search(estimator, kernels):
    grid = {
        "kernels__numbers__transformer__with_std": [False, True],
        "kernels__numbers__kernel__width": [1.0, 2.0],
    }
    search = GridSearchCV(estimator(kernels), grid, cv=3, error_score="raise").fit(X, y)
    assert search.best_params_["kernels__numbers__transformer__with_std"]
    assert len(set(search.cv_results_["mean_test_score"])) > 1
    assert dict(KERNELS)["numbers"].transformer.with_std


def test_steps_and_whole_transformers_in_a_grid_search():
    pipeline = make_pipeline(StandardScaler(), PCA())
    model = MKFDA([("numbers", RBF().on([0, 1]).after(pipeline)), *KERNELS[1:]])
    grid = [
        {"kernels__numbers__transformer__pca__n_components": [1, 2]},
        {"kernels__numbers__transformer": [StandardScaler()]},
    ]
    search = GridSearchCV(model, grid, cv=3, error_score="raise").fit(X, y)
    assert len(search.cv_results_["params"]) == 3


def test_text_through_an_encoder():
    encoder = make_column_transformer((StandardScaler(), ["age"]), (OneHotEncoder(), ["colour"]))
    kernels = {"both": RBF().on(["age", "colour"]).after(encoder), "bits": KERNELS[2][1]}
    assert cross_val_score(MKFDA(kernels), X, y, cv=3, error_score="raise").mean() > 0.7


class Recording(TransformerMixin, BaseEstimator):
    """Keeps the rows of every fit."""

    fits: ClassVar[list[list[float]]] = []

    def fit(self, X, y=None):
        self.fits.append(sorted(X[:, 0]))
        return self

    def transform(self, X):
        return X


@pytest.fixture
def fits(monkeypatch):
    monkeypatch.setattr(Recording, "fits", [])
    return Recording.fits


ROW_NUMBERS = np.column_stack([np.arange(N_ROWS), BITS])
ROWS_AND_BITS = {"rows": Linear().on([0]).after(Recording()), "bits": Jaccard().on([1, 2, 3, 4])}


@pytest.mark.parametrize("model", [MKFDA(ROWS_AND_BITS), MKSVC(ROWS_AND_BITS)], ids=repr)
def test_no_test_row_reaches_the_fit_of_a_transformer(model, fits):
    splits = list(KFold(3).split(ROW_NUMBERS))
    cross_val_score(model, ROW_NUMBERS, y, cv=splits, error_score="raise")
    assert fits == [train.tolist() for train, _ in splits]


def test_folds_within_a_fit_cut_kernels_that_are_computed_once(fits):
    MKFDACV(ROWS_AND_BITS, ps=[2.0], regs=[1.0, 10.0], cv=3).fit(ROW_NUMBERS[TRAIN], y[TRAIN])
    assert fits == [list(range(100))]


def test_rows_of_weight_zero_do_not_reach_it(fits):
    MKSVC(ROWS_AND_BITS).fit(ROW_NUMBERS, y, sample_weight=np.arange(N_ROWS) % 2)
    assert fits == [list(range(1, N_ROWS, 2))]


def test_sample_weights_are_repetitions():
    counts = 1 + np.arange(N_ROWS) % 3
    weighted = MKSVR(KERNELS).fit(X, score, sample_weight=counts)
    rows = np.repeat(np.arange(N_ROWS), counts)
    repeated = MKSVR(KERNELS).fit(X.iloc[rows], score[rows])
    assert_allclose(weighted.predict(X), repeated.predict(X), rtol=1e-3)


def test_errors_name_kernel_and_transformer():
    broken = [("text", RBF().on(["age", "colour"]).after(StandardScaler())), *KERNELS[1:]]
    with pytest.raises(
        ValueError, match="kernel 'text': RBF after StandardScaler: X: column 'colour' "
    ):
        MKFDA(broken).fit(X, y)
    model = MKFDA(KERNELS).fit(X, y)
    with pytest.raises(ValueError, match=r"'numbers': RBF after StandardScaler, output .*NaN"):
        model.predict(X.assign(age=np.nan))
    with pytest.raises(ValueError, match=r"'colour': all its columns are missing .* rows 2\."):
        model.predict(X.assign(colour=[*COLOUR[:2], None, *COLOUR[3:]]))
    with pytest.raises(ValueError, match=r"'bits': Jaccard: .* got 3 at row 0, column 'bit2'"):
        model.predict(X.assign(bit2=3))


def test_arrays_of_text_are_refused_with_the_way_out():
    kernels = [("colour", Categorical().on(2)), ("age", Linear().on(0))]
    with pytest.raises(ValueError, match=r"at 0, 2\. Tables with text are passed as data frames"):
        MKFDA(kernels).fit(X.to_numpy(dtype=object), y)
    MKFDA(clone(kernels, safe=False)).fit(X, y)
