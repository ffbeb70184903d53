"""Held-out samples as judges of steps: losses, errors, the step they choose."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics import accuracy_score, log_loss

from manykernels.discriminant import calibrated_decisions
from manykernels.gating.descent import ClassJudge, HeldOutCurve, HeldOutLosses, ValueJudge

rng = np.random.default_rng(0)
LABELS = rng.integers(0, 3, 60)
SCORES = rng.normal(size=(60, 3)) + 2.0 * np.eye(3)[LABELS]
EVERY = np.arange(60)


def test_losses_and_errors_are_those_of_scikit_learn():
    judged = ClassJudge.of(LABELS, 3, None)(SCORES, EVERY)
    frequencies = np.bincount(LABELS) / 60
    calibrated = calibrated_decisions(SCORES, frequencies, LABELS)
    logs = calibrated.log_probabilities
    assert judged.loss == pytest.approx(log_loss(LABELS, np.exp(logs)))
    assert judged.error == pytest.approx(1 - accuracy_score(LABELS, calibrated.scores.argmax(1)))
    # Better than the frequencies alone.
    assert judged.loss < -np.log(frequencies[LABELS]).mean()


@pytest.mark.parametrize("scale", [1e-3, 0.5, 20.0, 1e4])
def test_the_scale_of_outputs_does_not_matter_to_classes(scale):
    judge = ClassJudge.of(LABELS, 3, None)
    expected, found = judge(SCORES, EVERY), judge(scale * SCORES, EVERY)
    assert found.loss == pytest.approx(expected.loss, rel=1e-5)
    assert found.error == expected.error


def test_two_classes_have_one_output():
    labels = (LABELS == 0).astype(int)
    outputs = SCORES[:, [0]] - 1.0
    judged = ClassJudge.of(LABELS, 3, None).one_against_rest(0)(outputs, EVERY)
    assert judged.error == pytest.approx(np.mean((outputs[:, 0] > 0) != labels))


@pytest.mark.parametrize("kind", ["classes", "values"])
def test_a_count_of_two_is_a_repeated_sample(kind):
    counts = np.random.default_rng(3).integers(1, 4, 60).astype(float)
    rows = np.repeat(EVERY, counts.astype(int))
    if kind == "classes":
        weighted = ClassJudge.of(LABELS, 3, counts)(SCORES, EVERY)
        repeated = ClassJudge.of(LABELS[rows], 3, None, rows)(SCORES[rows], np.arange(len(rows)))
    else:
        weighted = ValueJudge(SCORES[:, 0], counts)(SCORES[:, 1:], EVERY)
        judge = ValueJudge(SCORES[rows, 0], groups=rows)
        repeated = judge(SCORES[rows, 1:], np.arange(len(rows)))
    assert weighted.loss == pytest.approx(repeated.loss, rel=1e-6)
    assert weighted.error == pytest.approx(repeated.error)
    # Both say the same of another candidate.
    worse = [
        HeldOutLosses(one.losses + 0.1, one.errors, one.counts) for one in (weighted, repeated)
    ]
    assert weighted.clearly_better(worse[0])
    assert repeated.clearly_better(worse[1])


def test_values_are_judged_by_their_squared_error_at_the_samples():
    targets, samples = np.arange(5.0), np.array([4, 1])
    judged = ValueJudge(targets)(np.array([[3.0], [1.5]]), samples)
    assert_allclose(judged.losses, [1.0, 0.25])
    assert judged.loss == judged.error == pytest.approx(0.625)


def curve(losses, errors):
    return HeldOutCurve(
        [HeldOutLosses(np.full(4, x), np.full(4, e)) for x, e in zip(losses, errors, strict=True)]
    )


@pytest.mark.parametrize(
    ("losses", "errors", "best"),
    [
        ([1.0, 0.8, 0.9], [0.2, 0.2, 0.2], 1),
        ([1.0, 0.8, 0.9], [0.2, 0.3, 0.1], 2),  # fewer errors than plain weights at least
        ([1.0, 0.8, 0.7], [0.2, 0.3, 0.3], 0),
        ([1.0, 1.0, 1.0], [0.2, 0.2, 0.2], 0),  # the fewest of equal steps
        ([1.0], [0.2], 0),
    ],
)
def test_the_step_of_the_least_loss_with_no_more_errors(losses, errors, best):
    assert curve(losses, errors).best == best


def test_a_gain_within_its_standard_error_is_not_clear():
    first = np.array([1.0, 2.0, 1.0, 2.0])
    noisy = first + np.array([-1.2, 1.0, -1.0, 1.0])
    errors = np.zeros(4)
    found = HeldOutCurve([HeldOutLosses(first, errors), HeldOutLosses(noisy, errors)])
    assert (found.best, found.clearly_best) == (1, 0)
    found = HeldOutCurve([HeldOutLosses(first, errors), HeldOutLosses(first - 0.05, errors)])
    assert (found.best, found.clearly_best) == (1, 1)
