"""Scores that are means of losses: those of scikit-learn, and any function."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import metrics

from manykernels import MKFDA, MKRidge
from manykernels.inspection.intervals import Intervals
from manykernels.inspection.scoring import Answers, checked_scoring

EVERY = np.ones(40, bool)


def estimator_of(classes):
    return MKFDA() if classes else MKRidge()


def score_of(name, y, answers, weights, *, of_classes):
    scoring = checked_scoring(name, estimator_of(of_classes))
    losses = scoring.of(y, answers, weights)
    return scoring.score(Intervals(weights, 0.95).of(losses)).value


@pytest.fixture
def random():
    return np.random.default_rng(3)


def test_scores_of_classes_are_those_of_scikit_learn(random):
    classes = np.array(["a", "b", "c"])
    y, predictions = random.choice(classes, 40), random.choice(classes, 40)
    probabilities = random.dirichlet(np.ones(3), 40)
    weights = random.integers(1, 4, 40).astype(float)
    answers = Answers(
        predictions, EVERY, -np.log(probabilities[np.arange(40), np.searchsorted(classes, y)])
    )
    accuracy = score_of("accuracy", y, answers, weights, of_classes=True)
    assert accuracy == pytest.approx(metrics.accuracy_score(y, predictions, sample_weight=weights))
    balanced = score_of("balanced_accuracy", y, answers, weights, of_classes=True)
    expected = metrics.balanced_accuracy_score(y, predictions, sample_weight=weights)
    assert balanced == pytest.approx(expected)
    log_loss = score_of("neg_log_loss", y, answers, weights, of_classes=True)
    assert log_loss == pytest.approx(-metrics.log_loss(y, probabilities, sample_weight=weights))


def two_classes(random, weights=None):
    """Log-odds with ties, of samples that were held out but for two."""
    y, odds = random.integers(0, 2, 40), random.normal(size=40).round(1)
    judged = np.arange(40) < 38
    return y, Answers(y, judged, np.zeros(40), odds + y), judged


@pytest.mark.parametrize("weighted", [False, True])
def test_the_area_under_the_roc_curve_is_that_of_scikit_learn(random, weighted):
    y, answers, judged = two_classes(random)
    weights = random.integers(1, 4, 40).astype(float) if weighted else np.ones(40)
    area = score_of("roc_auc", y, answers, weights, of_classes=True)
    odds = answers.log_odds
    expected = metrics.roc_auc_score(y[judged], odds[judged], sample_weight=weights[judged])
    assert area == pytest.approx(expected)


def test_the_standard_error_of_the_area_is_that_of_delong(random):
    y, answers, judged = two_classes(random)
    losses = checked_scoring("roc_auc", MKFDA()).of(y, answers, np.ones(40))[judged]
    first, second = (answers.log_odds[judged & (y == label)] for label in (0, 1))
    above = (second[:, None] > first) + 0.5 * (second[:, None] == first)
    variance = above.mean(1).var() / len(second) + above.mean(0).var() / len(first)
    influences = (1.0 - above.mean() - losses) / len(losses)
    np.testing.assert_allclose(influences @ influences, variance)


def test_the_area_is_for_two_classes(random):
    answers = Answers(np.zeros(40), EVERY, np.zeros(40), np.zeros(40))
    with pytest.raises(ValueError, match="for two classes, and y has 3: use"):
        checked_scoring("roc_auc", MKFDA()).of(np.arange(40) % 3, answers, np.ones(40))


@pytest.mark.parametrize("shape", [(40,), (40, 1), (40, 3)])
def test_scores_of_numbers_are_those_of_scikit_learn(random, shape):
    y = random.normal(size=shape)
    predictions, weights = y + random.normal(size=shape), random.integers(1, 4, 40).astype(float)
    known = {
        "r2": metrics.r2_score(y, predictions, sample_weight=weights),
        "neg_mean_squared_error": -metrics.mean_squared_error(
            y, predictions, sample_weight=weights
        ),
        "neg_mean_absolute_error": -metrics.mean_absolute_error(
            y, predictions, sample_weight=weights
        ),
    }
    for name, expected in known.items():
        found = score_of(name, y, Answers(predictions, EVERY), weights, of_classes=False)
        assert found == pytest.approx(expected), name


def test_the_first_is_the_default_and_a_function_is_taken_as_it_is(random):
    assert checked_scoring(None, estimator_of(True)).name == "accuracy"
    assert checked_scoring(None, estimator_of(False)).name == "r2"

    def quartic(y, predictions):
        return (y - predictions) ** 4

    y, predictions = random.normal(size=40), random.normal(size=40)
    judged = np.arange(40) < 30
    losses = checked_scoring(quartic, estimator_of(False)).of(
        y, Answers(predictions, judged), np.ones(40)
    )
    np.testing.assert_allclose(losses[:30], quartic(y, predictions)[:30])
    assert np.isnan(losses[30:]).all()


@pytest.mark.parametrize(
    ("given", "of_classes"), [("f1", True), ("r2", True), ("accuracy", False), (3, True)]
)
def test_scores_without_losses_of_samples_are_refused(given, of_classes):
    with pytest.raises(ValueError, match="a loss of every single sample"):
        checked_scoring(given, estimator_of(of_classes))


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (lambda y, found: 1.0, r"of shape \(\)"),
        (lambda y, found: np.full(len(y), np.nan), "NaN or infinity"),
    ],
)
def test_functions_that_are_no_losses_are_refused(loss, message):
    scoring = checked_scoring(loss, estimator_of(True))
    with pytest.raises(ValueError, match=message):
        scoring.of(np.zeros(40), Answers(np.zeros(40), EVERY), np.ones(40))


def test_constant_targets_have_no_r2():
    with pytest.raises(ValueError, match="all values of y are equal"):
        checked_scoring("r2", estimator_of(False)).of(
            np.ones(40), Answers(np.zeros(40), EVERY), np.ones(40)
        )


@pytest.mark.parametrize("n_wrong", [0, 1, 5, 40])
def test_intervals_of_balanced_accuracy_are_in_range(n_wrong):
    y = np.arange(40) % 2
    predictions = np.where(np.arange(40) < n_wrong, 1 - y, y)
    scoring = checked_scoring("balanced_accuracy", MKFDA())
    losses = scoring.of(y, Answers(predictions, EVERY), np.ones(40))
    found = scoring.score(Intervals(np.ones(40), 0.95, most=scoring.most).of(losses))
    assert 0.0 <= found.low <= found.value <= found.high <= 1.0
    assert found.high - found.low > 0.05
