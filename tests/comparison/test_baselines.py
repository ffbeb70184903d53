"""Methods of scikit-learn beside ours: what they learn from, and what they predict."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_validate

from manykernels import MKFDA, KernelStack, MKCox, MKRidge, Views, compare
from manykernels.comparison.baselines import JoinedColumns, baselines_for
from manykernels.datasets import make_survival_views
from manykernels.kernels import RBF

RNG = np.random.default_rng(0)
N = 60
A = pd.DataFrame({"x": RNG.normal(size=N), "site": RNG.choice(["n", "s"], N)})
B = RNG.normal(size=(N, 2))
CLASSES = np.where(A["x"] + 0.5 * B[:, 0] > 0, "ill", "well")
NUMBERS = A["x"].to_numpy() + B[:, 0] + 0.1 * RNG.normal(size=N)


# -- columns -------------------------------------------------------------------------------------


def test_columns_of_views_are_put_side_by_side():
    X = JoinedColumns().fit_transform(Views({"a": A, "b": B}))
    expected = np.column_stack([A["x"], A["site"] == "n", A["site"] == "s", B])
    assert_array_equal(X, expected)


def test_values_that_are_new_and_rows_without_a_view():
    a = A.set_axis([f"s{i}" for i in range(N)])
    joined = JoinedColumns().fit(Views({"a": a}))
    new = pd.DataFrame({"x": [1.0], "site": ["elsewhere"]}, index=["new"])
    assert_array_equal(joined.transform(Views({"a": new})), [[1.0, 0.0, 0.0]])
    b = pd.DataFrame(B, index=a.index)
    gaps = Views({"a": a[:50], "b": b[10:]}, join="outer")
    X = JoinedColumns().fit_transform(gaps)
    lacking = ~gaps.has("a")
    assert np.isnan(X[lacking][:, :3]).all()
    assert_array_equal(X[~lacking][:, 0], A["x"][:50])
    assert_array_equal(X[gaps.has("b")][:, 3:], B[10:])


def test_one_table_of_every_kind():
    for table in (B, pd.DataFrame(B), sparse.csr_matrix(B), B.tolist()):
        assert_array_equal(JoinedColumns().fit_transform(table), B)


# -- methods -------------------------------------------------------------------------------------


def test_they_are_rows_of_the_comparison():
    X = {"a": A[["x"]], "b": B}
    result = compare({"ours": MKFDA(RBF())}, X, CLASSES, baselines=True, cv=3)
    scores = {row["method"]: row["accuracy"] for row in result.rows()}
    assert list(scores) == ["ours", "constant", "linear", "boosting"]
    # Of stratified folds, always the most frequent class.
    assert scores["constant"] == pytest.approx(np.mean(CLASSES == "well"), abs=0.1)
    assert scores["linear"] > 0.85
    assert scores["boosting"] > 0.7


def test_the_linear_model_is_a_logistic_regression():
    linear = baselines_for(B, CLASSES, classes=True)["linear"]
    scaled = (B - B.mean(0)) / B.std(0)
    grid = linear[-1].param_grid
    same = GridSearchCV(LogisticRegression(max_iter=2000), grid).fit(scaled, CLASSES)
    assert_array_equal(linear.fit(B, CLASSES).predict(B), same.predict(scaled))


@pytest.mark.parametrize(
    ("y", "options"),
    [
        (NUMBERS, {"classes": False}),
        (np.column_stack([NUMBERS, B]), {"classes": False}),
        (np.round(np.exp(NUMBERS / 2)), {"classes": False, "counts": True}),
        (np.column_stack([CLASSES == "ill", B[:, 1] > 0]).astype(int), {"classes": True}),
    ],
)
def test_they_learn_every_kind_of_target(y, options):
    X = Views({"a": A, "b": B})
    for name, method in baselines_for(X, y, **options).items():
        predictions = method.fit(X, y).predict(X)
        assert predictions.shape == y.shape, name
        if name != "constant":
            assert method.score(X, y) > 0.3, name


def test_names_of_ours_are_kept():
    ours = {"linear": MKRidge(RBF())}
    result = compare(ours, {"b": B}, NUMBERS, baselines=True, cv=2)
    assert list(result.names) == ["linear", "constant", "boosting"]


def test_kernels_and_sequences_have_a_constant_only():
    kernel = np.exp(-((B[:, None] - B) ** 2).sum(-1))
    stack = KernelStack.from_arrays({"k": kernel})
    result = compare({"ours": MKFDA("precomputed")}, stack, CLASSES, baselines=True, cv=2)
    assert list(result.names) == ["ours", "constant"]
    texts = Views({"s": ["ACGT"] * N})
    assert list(baselines_for(texts, CLASSES, classes=True)) == ["constant"]


def test_survival_times_have_none():
    views, y, _ = make_survival_views(60, n_features=2, random_state=0)
    result = compare({"ours": MKCox(RBF())}, views, y, baselines=True, cv=2)
    assert list(result.names) == ["ours"]


def test_they_can_be_scored_by_themselves():
    scores = cross_validate(baselines_for(B, NUMBERS, classes=False)["linear"], B, NUMBERS)
    assert np.median(scores["test_score"]) > 0.2
