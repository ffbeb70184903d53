"""Metrics: known answers, laws, what they refuse; the 5×2 cv F test on tables and kernels."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse, stats
from sklearn.base import clone
from sklearn.datasets import load_iris, make_classification
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import (
    average_precision_score,
    balanced_accuracy_score,
    make_scorer,
    matthews_corrcoef,
)
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.svm import SVC

from manykernels import MKFDA, rbf_grid
from manykernels.metrics import (
    corrected_t_test,
    five_by_two_cv_f_test,
    mean_average_precision,
    mean_class_accuracy,
    mean_class_mcc,
)
from manykernels.metrics.classwise import CLASS_SCORERS, mean_average_precision_scorer
from manykernels.metrics.comparison import combined_f_test, holm
from tests.problems import slow

OF_LABELS = [mean_class_accuracy, mean_class_mcc]
NAMES = np.array(["ash", "birch", "cedar", "dogwood"])


@st.composite
def label_pairs(draw, n_classes=4):
    """True and predicted labels, at least two classes in the first."""
    size = draw(st.integers(2, 25))
    labels = st.lists(st.integers(0, n_classes - 1), min_size=size, max_size=size)
    return draw(labels.filter(lambda y: len(set(y)) > 1)), draw(labels)


def integer_weights(y):
    return np.arange(len(y)) % 3 + 1


# -- laws ----------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", [OF_LABELS[0], *slow(*OF_LABELS[1:])])
@settings(deadline=None, max_examples=40)
@given(pair=label_pairs(), order=st.permutations(range(4)))
def test_renaming_the_classes_changes_nothing(metric, pair, order):
    y_true, y_pred = map(np.array, pair)
    renamed = NAMES[list(order)]
    assert metric(renamed[y_true], renamed[y_pred]) == pytest.approx(metric(y_true, y_pred))


@pytest.mark.parametrize("metric", [OF_LABELS[0], *slow(*OF_LABELS[1:])])
@settings(deadline=None, max_examples=40)
@given(pair=label_pairs())
def test_a_perfect_prediction_is_one_and_none_is_better(metric, pair):
    y_true, y_pred = pair
    assert metric(y_true, y_true) == pytest.approx(1.0)
    assert -1.0 - 1e-12 <= metric(y_true, y_pred) <= 1.0 + 1e-12


@pytest.mark.parametrize("metric", [OF_LABELS[0], *slow(*OF_LABELS[1:])])
@settings(deadline=None, max_examples=40)
@given(pair=label_pairs())
def test_weights_count_as_copies(metric, pair):
    y_true, y_pred = map(np.array, pair)
    weights = integer_weights(y_true)
    weighted = metric(y_true, y_pred, sample_weight=weights)
    assert weighted == pytest.approx(metric(y_true.repeat(weights), y_pred.repeat(weights)))


@settings(deadline=None, max_examples=40)
@given(pair=label_pairs(n_classes=2))
@pytest.mark.filterwarnings("ignore:A single label was found")
def test_mcc_of_two_classes_is_that_of_scikit_learn(pair):
    y_true, y_pred = pair
    weights = integer_weights(y_true)
    assert mean_class_mcc(y_true, y_pred) == pytest.approx(matthews_corrcoef(y_true, y_pred))
    assert mean_class_mcc(y_true, y_pred, sample_weight=weights) == pytest.approx(
        matthews_corrcoef(y_true, y_pred, sample_weight=weights)
    )


@settings(deadline=None, max_examples=40)
@given(pair=label_pairs())
@pytest.mark.filterwarnings("ignore:y_pred contains classes not in y_true")
def test_accuracy_is_the_balanced_accuracy(pair):
    y_true, y_pred = pair
    expected = balanced_accuracy_score(y_true, y_pred)
    assert mean_class_accuracy(y_true, y_pred) == pytest.approx(expected)


@settings(deadline=None, max_examples=40)
@given(pair=label_pairs())
@pytest.mark.filterwarnings("ignore:A single label was found")
def test_mcc_is_the_mean_of_one_against_the_rest(pair):
    y_true, y_pred = map(np.array, pair)
    each = [matthews_corrcoef(y_true == k, y_pred == k) for k in np.unique(y_true)]
    assert mean_class_mcc(y_true, y_pred) == pytest.approx(np.mean(each))


@settings(deadline=None, max_examples=40)
@given(
    labels=st.lists(st.integers(0, 3), min_size=5, max_size=20).filter(lambda y: len(set(y)) > 2),
    seed=st.integers(0, 99),
)
def test_map_ignores_the_order_of_samples_and_monotone_maps_of_scores(labels, seed):
    rng = np.random.default_rng(seed)
    y, scores = np.array(labels), rng.standard_normal((len(labels), 4))
    value = mean_average_precision(y, scores, labels=range(4))
    shuffled = rng.permutation(len(y))
    assert mean_average_precision(y[shuffled], scores[shuffled], labels=range(4)) == pytest.approx(
        value
    )
    assert mean_average_precision(y, np.exp(scores), labels=range(4)) == pytest.approx(value)
    assert mean_average_precision(y, np.eye(4)[y], labels=range(4)) == pytest.approx(1.0)


def test_map_counts_weights_as_copies():
    rng = np.random.default_rng(0)
    y, scores = np.arange(30) % 3, rng.standard_normal((30, 3))
    weights = rng.integers(0, 3, 30)
    weighted = mean_average_precision(y, scores, sample_weight=weights)
    copies = mean_average_precision(y.repeat(weights), scores.repeat(weights, axis=0))
    assert weighted == pytest.approx(copies)


# -- known answers -------------------------------------------------------------------------


def test_mcc_by_hand():
    y_true, y_pred = list("aaabbc"), list("aabbbc")
    # a: hits 2, missed 1, alarms 0, rest 3. b: 2, 0, 1, 3. c: 1, 0, 0, 5.
    a, b = 6 / np.sqrt(2 * 3 * 3 * 4), 6 / np.sqrt(3 * 2 * 4 * 3)
    assert mean_class_mcc(y_true, y_pred) == pytest.approx((a + b + 1) / 3)


def test_map_of_classes_is_the_mean_of_average_precisions():
    rng = np.random.default_rng(1)
    y, scores = rng.integers(0, 3, 40), rng.standard_normal((40, 3))
    each = [average_precision_score(y == k, scores[:, k]) for k in range(3)]
    assert mean_average_precision(NAMES[y], scores) == pytest.approx(np.mean(each))
    indicator = np.eye(3, dtype=int)[y]
    assert mean_average_precision(indicator, scores) == pytest.approx(np.mean(each))
    assert mean_average_precision(sparse.csr_array(indicator), scores) == pytest.approx(
        np.mean(each)
    )


def test_map_of_two_classes_is_that_of_the_second():
    rng = np.random.default_rng(2)
    y, scores = np.arange(20) % 2, rng.standard_normal(20)
    expected = average_precision_score(y, scores)
    named = NAMES[y]
    assert mean_average_precision(named, scores) == pytest.approx(expected)
    assert mean_average_precision(named, scores[:, None]) == pytest.approx(expected)
    both = np.column_stack([-scores, scores])
    assert mean_average_precision(named, both) == pytest.approx(expected)
    assert mean_average_precision(named, -scores, labels=["birch", "ash"]) == pytest.approx(
        average_precision_score(1 - y, -scores)
    )


# -- edges ---------------------------------------------------------------------------------


def test_a_class_that_is_never_predicted_correlates_with_nothing():
    y_true, y_pred = list("aabbc"), list("aabbb")
    assert mean_class_accuracy(y_true, y_pred) == pytest.approx(2 / 3)
    b = matthews_corrcoef([0, 0, 1, 1, 0], [0, 0, 1, 1, 1])
    assert mean_class_mcc(y_true, y_pred) == pytest.approx((1 + b + 0) / 3)


def test_a_class_that_is_only_predicted_does_not_count():
    y_true, y_pred = list("aabb"), list("aabz")
    assert mean_class_accuracy(y_true, y_pred) == pytest.approx(0.75)
    b = matthews_corrcoef([0, 0, 1, 1], [0, 0, 1, 0])
    assert mean_class_mcc(y_true, y_pred) == pytest.approx((1 + b) / 2)


def test_a_class_without_weight_does_not_count():
    y_true, y_pred, weights = list("aabbc"), list("aabaa"), [1, 1, 1, 1, 0]
    for metric in OF_LABELS:
        assert metric(y_true, y_pred, sample_weight=weights) == metric(y_true[:4], y_pred[:4])


def test_a_single_class():
    assert mean_class_accuracy(["a", "a"], ["a", "a"]) == 1.0
    assert mean_class_mcc(["a", "a"], ["a", "a"]) == 0.0
    with pytest.raises(ValueError, match="one class, 'a': pass labels"):
        mean_average_precision(["a", "a"], [0.1, 0.2])
    with pytest.raises(ValueError, match="No sample belongs to a class"):
        mean_average_precision(["a", "a"], [0.1, 0.2], labels=["a", "b"])


def test_classes_without_samples_have_no_precision():
    y, scores = [0, 0, 2, 2], np.eye(3)[[0, 0, 2, 2]]
    assert mean_average_precision(y, scores, labels=[0, 1, 2]) == 1.0
    assert mean_average_precision([[1, 0], [0, 0]], [[0.9, 0.4], [0.1, 0.2]]) == 1.0


@pytest.mark.parametrize("metric", OF_LABELS)
@pytest.mark.parametrize(
    ("y_true", "y_pred", "message"),
    [
        ([0, 1], [0, 1, 1], "inconsistent numbers"),
        ([0.5, 1.2], [0, 1], "y_true must be one class per sample"),
        ([[1, 0], [1, 1]], [[1, 0], [1, 1]], "1d array"),
        (["a", "b"], [0, 1], "Mix of label input types"),
        ([0.0, np.nan], [0, 1], "NaN"),
    ],
)
def test_what_label_metrics_refuse(metric, y_true, y_pred, message):
    with pytest.raises(ValueError, match=message):
        metric(y_true, y_pred)


@pytest.mark.parametrize("metric", OF_LABELS)
def test_weights_must_be_non_negative_and_not_all_zero(metric):
    for weights in ([1, -1, 1], [0, 0, 0]):
        with pytest.raises(ValueError, match="weight"):
            metric([0, 1, 1], [0, 1, 0], sample_weight=weights)


@pytest.mark.parametrize(
    ("y", "scores", "options", "message"),
    [
        ([0, 1, 1], [0.1, np.nan, 0.3], {}, "nan at sample 1, column 0"),
        ([0, 1, 1], [0.1, np.inf, 0.3], {}, "inf at sample 1"),
        ([0, 1, 2], np.eye(3)[:, :2], {}, "2 columns for 3 classes"),
        ([0, 1, 1], np.eye(3), {}, "pass labels"),
        ([0, 1, 2], [0.1, 0.2, 0.3], {}, "1 columns for 3 classes"),
        ([0, 1, 5], np.eye(3), {"labels": [0, 1, 2]}, r"not among the labels: \[5\]"),
        ([[1, 0], [1, 1]], np.eye(2), {"labels": [0, 1]}, "not an indicator matrix"),
        ([[1, 0], [1, 1]], [0.1, 0.2], {}, "needs the same shape"),
        ([0, 1], np.zeros((2, 2, 2)), {}, "one or two dimensions"),
        ([0, 1], [0.1, 0.2, 0.3], {}, "inconsistent numbers"),
        ([0, np.nan], [0.1, 0.2], {}, "y contains NaN"),
    ],
)
def test_what_mean_average_precision_refuses(y, scores, options, message):
    with pytest.raises(ValueError, match=message):
        mean_average_precision(y, scores, **options)


# -- as scorers ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def flowers():
    X, y = load_iris(return_X_y=True)
    return X, NAMES[y]


def test_scorers_work_in_a_search(flowers):
    search = GridSearchCV(
        MKFDA(),
        {"p": [1, 2]},
        scoring=CLASS_SCORERS,
        refit="mean_class_mcc",
        cv=3,
        error_score="raise",
    ).fit(*flowers)
    for name in CLASS_SCORERS:
        assert (search.cv_results_[f"mean_test_{name}"] > 0.9).all()


def test_scorers_work_on_kernels(flowers):
    X, y = flowers
    stack = rbf_grid([1, 2]).fit(X)(X)
    scores = cross_validate(
        MKFDA("precomputed"), stack, y, scoring=CLASS_SCORERS, cv=3, error_score="raise"
    )
    assert min(scores[f"test_{name}"].min() for name in CLASS_SCORERS) > 0.9


def test_the_scorer_knows_classes_that_the_test_samples_miss(flowers):
    X, y = flowers
    model = MKFDA().fit(X, y)
    some = y != "birch"
    expected = mean_average_precision(
        y[some], model.decision_function(X[some]), labels=model.classes_
    )
    assert mean_average_precision_scorer(model, X[some], y[some]) == expected


def test_the_scorer_takes_probabilities_where_there_are_no_scores(flowers):
    X, y = flowers
    model = LogisticRegression(max_iter=1000).fit(X, y)
    expected = mean_average_precision(y, model.predict_proba(X))

    class Probabilities:
        classes_, predict_proba = model.classes_, model.predict_proba

    assert mean_average_precision_scorer(Probabilities(), X, y) == expected


@pytest.mark.parametrize("several", [OneVsRestClassifier, MultiOutputClassifier])
def test_the_scorer_on_samples_of_several_classes(several):
    X, y = make_classification(90, n_informative=6, n_classes=3, random_state=0)
    indicator = np.column_stack([y == 0, y != 1, y == 2]).astype(int)
    model = several(MKFDA()).fit(X, indicator)
    assert mean_average_precision_scorer(model, X, indicator) > 0.9


# -- the F test ----------------------------------------------------------------------------


def naive_f_test(table):
    numerator = denominator = 0.0
    for first, second in table:
        mean = (first + second) / 2
        numerator += first**2 + second**2
        denominator += (first - mean) ** 2 + (second - mean) ** 2
    statistic = numerator / (2 * denominator)
    return statistic, 1 - stats.f.cdf(statistic, 10, 5)


TABLES = hnp.arrays(float, (5, 2), elements=st.integers(-20, 20).map(lambda k: k / 100))


@settings(deadline=None, max_examples=40)
@given(table=TABLES.filter(lambda table: np.any(table[:, 0] != table[:, 1])))
def test_statistic_is_that_of_the_formula(table):
    statistic, pvalue = naive_f_test(table)
    result = combined_f_test(table)
    assert result.statistic == pytest.approx(statistic)
    assert result.pvalue == pytest.approx(pvalue, abs=1e-12)
    np.testing.assert_array_equal(result.differences, table)


@settings(deadline=None, max_examples=40)
@given(table=TABLES, factor=st.sampled_from([-3.0, 1e-200, 1e200]))
def test_sign_and_unit_of_the_score_play_no_part(table, factor):
    one, other = combined_f_test(table), combined_f_test(factor * table)
    assert other.statistic == pytest.approx(one.statistic)
    assert other.pvalue == pytest.approx(one.pvalue)


def test_no_difference_at_all_has_pvalue_one():
    result = combined_f_test(np.zeros((5, 2)))
    assert (result.statistic, result.pvalue) == (0.0, 1.0)


def test_the_same_difference_everywhere_has_pvalue_zero():
    result = combined_f_test(np.full((5, 2), -0.1))
    assert (result.statistic, result.pvalue) == (np.inf, 0.0)


def test_the_level_of_the_test_is_about_its_nominal_one():
    """Independent differences of mean zero, for which F(10, 5) is exact up to p̄ ≠ 0."""
    tables = np.random.default_rng(0).standard_normal((2000, 5, 2))
    rejected = np.mean([combined_f_test(table).pvalue < 0.05 for table in tables])
    assert rejected < 0.06


@pytest.mark.parametrize("table", [np.zeros((2, 5)), np.zeros(10), [[0.1, 0.2]]])
def test_other_shapes_are_refused(table):
    with pytest.raises(ValueError, match=r"shape \(5, 2\)"):
        combined_f_test(table)


def test_scores_that_are_not_finite_are_named(flowers):
    table = np.zeros((5, 2))
    table[3, 1] = np.nan
    with pytest.raises(ValueError, match="fold 1 of replication 3 is nan"):
        combined_f_test(table)
    with pytest.raises(ValueError, match="finite scores"):
        five_by_two_cv_f_test(
            DummyClassifier(),
            DummyClassifier(),
            *flowers,
            scoring=make_scorer(lambda y_true, y_pred: np.nan),
        )


def test_differences_are_those_of_the_two_estimators(flowers):
    X, y = flowers
    constant = DummyClassifier(strategy="constant", constant="ash")
    result = five_by_two_cv_f_test(MKFDA(), constant, X, y, random_state=0)
    # Halves of three classes of 50 are 25 each: the constant is right in a third.
    assert result.differences == pytest.approx(0.95 - 1 / 3, abs=0.1)
    assert result.pvalue < 1e-3
    reverse = five_by_two_cv_f_test(constant, MKFDA(), X, y, random_state=0)
    np.testing.assert_allclose(reverse.differences, -result.differences)


@pytest.mark.slow
def test_both_estimators_see_the_same_splits(flowers):
    for random_state in (None, np.random.RandomState(0)):
        result = five_by_two_cv_f_test(MKFDA(p=1), MKFDA(p=1), *flowers, random_state=random_state)
        assert (result.statistic, result.pvalue) == (0.0, 1.0)


@pytest.mark.slow
def test_kernels_and_the_table_behind_them_agree(flowers):
    X, y = flowers
    union = rbf_grid([0.5, 2.0])
    stack = union.fit(X)(X)
    options = {"scoring": CLASS_SCORERS["mean_average_precision"], "random_state": 3}
    table = five_by_two_cv_f_test(MKFDA(union, reg=1e-3), MKFDA(union, reg=10), X, y, **options)
    models = [MKFDA("precomputed", reg=reg) for reg in (1e-3, 10)]
    kernels = five_by_two_cv_f_test(*models, stack, y, **options)
    np.testing.assert_allclose(kernels.differences, table.differences, atol=1e-9)
    single = SVC(kernel="precomputed")
    assert five_by_two_cv_f_test(single, clone(single), stack.kernel(0), y).pvalue == 1.0


def test_regressors_are_compared_too(flowers):
    X, _ = flowers
    result = five_by_two_cv_f_test(
        LinearRegression(), DummyRegressor(), X[:, :3], X[:, 3], random_state=0
    )
    assert result.pvalue < 1e-3


def test_the_seed_fixes_the_result(flowers):
    models = LogisticRegression(C=1e-3), DummyClassifier()
    one, other = (five_by_two_cv_f_test(*models, *flowers, random_state=7) for _ in range(2))
    np.testing.assert_array_equal(one.differences, other.differences)


# -- the corrected resampled t test, and Holm's correction -----------------------------------


def test_corrected_t_test_by_hand():
    differences = np.array([1.0, 2.0, 3.0, 2.0, 2.0])
    # Mean 2, variance 0.5, t = 2 / sqrt(0.5 * 1.2) on four degrees of freedom.
    result = corrected_t_test(differences, 1.0)
    assert result.statistic == pytest.approx(2 / np.sqrt(0.6))
    assert result.pvalue == pytest.approx(2 * stats.t.sf(2 / np.sqrt(0.6), 4))
    assert corrected_t_test(-differences, 1.0).pvalue == result.pvalue
    assert corrected_t_test(differences, 0.25).pvalue < result.pvalue


def test_corrected_t_test_without_spread():
    assert corrected_t_test(np.zeros(5), 0.5).pvalue == 1.0
    assert corrected_t_test(np.full(7, 0.1), 0.5).pvalue == 0.0
    assert corrected_t_test(np.full(7, -0.1), 0.5).statistic == -np.inf


@pytest.mark.parametrize(
    ("differences", "ratio", "message"),
    [
        ([0.1], 0.5, "at least two"),
        ([[0.1, 0.2]], 0.5, "at least two"),
        ([0.1, np.nan], 0.5, "split 1 is nan"),
        ([0.1, 0.2], 0.0, "test_per_train"),
        ([0.1, 0.2], np.nan, "test_per_train"),
    ],
)
def test_corrected_t_test_refuses(differences, ratio, message):
    with pytest.raises(ValueError, match=message):
        corrected_t_test(differences, ratio)


@settings(deadline=None, max_examples=50)
@given(p=st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_lies_between_nothing_and_bonferroni(p):
    p = np.array(p)
    corrected = holm(p)
    assert (corrected >= p).all()
    assert (corrected <= np.minimum(1, len(p) * p)).all()
    order = np.argsort(p, kind="stable")
    assert (np.diff(corrected[order]) >= 0).all()
    # What is rejected at 0.05 is what stepping down by hand rejects.
    rejected = 0
    while rejected < len(p) and p[order[rejected]] * (len(p) - rejected) <= 0.05:
        rejected += 1
    assert np.count_nonzero(corrected <= 0.05) == rejected


def test_holm_leaves_out_what_was_not_tested():
    np.testing.assert_array_equal(holm([np.nan, 0.02, np.nan, 0.01]), [np.nan, 0.02, np.nan, 0.02])
    assert holm([]).shape == (0,)
    with pytest.raises(ValueError, match="between 0 and 1"):
        holm([1.5])
