"""The choice among points of a grid, and the splits of a regression."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.metrics import make_scorer, mean_absolute_error, mean_squared_error

from manykernels import MKFDACV, rbf_grid
from manykernels.discriminant import Samples
from manykernels.estimators.grid import Grid
from manykernels.estimators.held_out import HeldOutValues, SplitOutputs
from manykernels.estimators.search import Choice, Splits, cv_results
from manykernels.estimators.training_rows import targeted_rows
from manykernels.gating.descent import HeldOutLosses
from manykernels.kernels import KernelStack
from manykernels.losses.base import Certificate
from manykernels.solvers.path import GridRecord

GRID = Grid({"p": np.array([2.0, 1.0]), "C": np.array([1.0, 10.0, 100.0])})


def solved(grid, n_splits):
    records = [GridRecord.unsolved(grid.shape) for _ in range(n_splits)]
    for record in records:
        record.n_inner_solves[:] = 1
        record.converged[:] = True
        record.rel_gaps[:] = 1e-6
    return records


def chosen(scores, grid=GRID, second=None, **options):
    asked = SimpleNamespace(
        **{"scoring": None, "one_standard_error": False, "tol": 1e-4, **options}
    )
    held_out = SimpleNamespace(
        scores=lambda scorer: np.asarray(scores, float),
        records=solved(grid, len(scores)),
        losses_at=lambda at: SimpleNamespace(loss=second(at)),
        loss_breaks_ties=second is not None,
    )
    return Choice.of(asked, grid, held_out, None)


# -- the choice ------------------------------------------------------------------------------


def test_the_best_point_is_chosen():
    scores = np.zeros((3, 2, 3))
    scores[:, 0, 1] = 1.0
    choice = chosen(scores)
    assert choice.params == {"p": 2.0, "C": 10.0}
    assert choice.attributes["p_"] == 2.0
    assert choice.attributes["C_"] == 10.0
    assert choice.attributes["best_score_"] == 1.0
    assert choice.attributes["n_splits_"] == 3


def test_of_equal_points_the_second_score_decides_or_else_simplicity():
    scores = np.ones((3, 2, 3))
    assert chosen(scores).params == {"p": 2.0, "C": 1.0}
    assert chosen(scores, second=lambda at: -sum(at)).params == {"p": 1.0, "C": 100.0}


def test_the_simplest_point_within_one_standard_error():
    """Means 0.9 ± 0.05 at the best point; p = 2 is within it, its C is the best of the three."""
    scores = np.empty((2, 2, 3))
    scores[:, 0] = np.transpose([[0.852, 0.852], [0.87, 0.87], [0.5, 0.5]])
    scores[:, 1] = np.transpose([[0.7, 0.7], [0.86, 0.86], [0.85, 0.95]])
    assert chosen(scores).params == {"p": 1.0, "C": 100.0}
    choice = chosen(scores, one_standard_error=True)
    assert choice.params == {"p": 2.0, "C": 10.0}
    assert choice.attributes["best_score_"] == pytest.approx(0.87)
    scores[:, 0] -= 0.1
    assert chosen(scores, one_standard_error=True).params == {"p": 1.0, "C": 100.0}


def test_regularisation_is_the_best_one_within_one_standard_error():
    grid = Grid({"p": np.array([1.0]), "reg": np.array([0.1, 1.0])})
    scores = np.transpose([[[0.85, 0.95]], [[0.88, 0.88]]], (2, 1, 0))
    assert chosen(scores, grid, one_standard_error=True).params == {"p": 1.0, "reg": 0.1}
    assert chosen(np.ones((2, 1, 2)), grid, one_standard_error=True).params["reg"] == 1.0


def test_fewer_regions_are_simpler_than_a_larger_norm():
    grid = Grid({"n_regions": np.array([1.0, 2.0]), "p": np.array([1.0, 2.0])})
    scores = np.ones((2, 2, 2))
    scores[:, 0, 1] = 0.0
    judged = SimpleNamespace(loss=0.0, clearly_better=lambda other: True)
    asked = SimpleNamespace(scoring=None, one_standard_error=True, tol=1e-4)
    held_out = SimpleNamespace(
        scores=lambda scorer: scores,
        records=solved(grid, 2),
        losses_at=lambda at: judged,
        loss_breaks_ties=False,
    )
    assert Choice.of(asked, grid, held_out, None).params == {"n_regions": 1.0, "p": 1.0}


@pytest.mark.parametrize(
    ("name", "values", "simplest"),
    [("p", [1, 2], 2), ("reg", [0.1, 1], 1), ("C", [1, 10], 1), ("epsilon", [0.1, 0.5], 0.5)],
)
def test_what_is_simpler(name, values, simplest):
    grid = Grid({name: np.array(values, float)})
    assert chosen(np.ones((2, 2)), grid).params == {name: simplest}


def test_undefined_scores_are_never_within_one_standard_error():
    scores = np.ones((2, 2, 3))
    scores[0, 0, 0] = np.nan
    with pytest.warns(UserWarning, match="gave nan at 1 of 6 points"):
        choice = chosen(scores, one_standard_error=True)
    assert choice.params == {"p": 2.0, "C": 10.0}


def test_standard_errors_by_hand():
    scores = np.random.default_rng(0).normal(size=(5, 2, 3))
    results = cv_results(GRID, scores, solved(GRID, 5))
    for k in range(6):
        own = [results[f"split{i}_test_score"][k] for i in range(5)]
        mean = sum(own) / 5
        variance = sum((score - mean) ** 2 for score in own) / 4
        assert results["se_test_score"][k] == pytest.approx(np.sqrt(variance / 5))
    assert results["params"][4] == {"p": 1.0, "C": 10.0}
    assert results["param_C"][4] == 10.0
    assert np.isnan(cv_results(GRID, scores[:1], solved(GRID, 1))["se_test_score"]).all()


def test_a_discriminant_by_one_standard_error():
    X, y = load_iris(return_X_y=True)
    grid = {"ps": [1, 2.0], "regs": [0.1, 1.0, 10.0]}
    best = MKFDACV(**grid).fit(X, y)
    simple = MKFDACV(**grid, one_standard_error=True).fit(X, y)
    results = best.cv_results_
    at = int(np.argmax(results["mean_test_score"]))
    least = results["mean_test_score"][at] - results["se_test_score"][at]
    within = [
        (params["p"], score)
        for params, score in zip(results["params"], results["mean_test_score"], strict=True)
        if score >= least
    ]
    assert max(within) == (simple.p_, simple.best_score_)


@pytest.mark.parametrize("cv", ["closed-form", (load_iris().data, load_iris().target)])
def test_one_split_has_no_standard_error(cv):
    model = MKFDACV(ps=[1], regs=[1.0], cv=cv, one_standard_error=True)
    with pytest.raises(ValueError, match="one_standard_error=True needs the scores of several"):
        model.fit(*load_iris(return_X_y=True))


# -- splits of a regression ------------------------------------------------------------------

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
Y = X[:, 0]


def splits_of(X, y, cv=None, sample_weight=None):
    """Training and test samples of every split."""
    model = MKFDACV(cv=cv)
    rows = targeted_rows(model, X, y, sample_weight)
    stack, source = rows.data.compute(rows.counts, True, None)
    samples = Samples(stack, rows.targets, None, rows.counts, rows.counts, rows.groups)
    return [split.parts() for split in Splits(model, rows, source, samples).of(y)]


def targets_of_folds(X, y, **options):
    return sorted(sorted(test.targets.tolist()) for _, test in splits_of(X, y, **options))


def test_five_folds():
    folds = targets_of_folds(X, Y)
    assert [len(fold) for fold in folds] == [8] * 5
    assert folds == targets_of_folds(X, Y)
    for train, test in splits_of(X, Y):
        assert train.stack.shape == (32, 32, train.stack.n_kernels)
        assert test.stack.shape == (8, 32, train.stack.n_kernels)


def test_equal_rows_stay_together():
    twice = np.concatenate([X, X])
    folds = targets_of_folds(twice, np.concatenate([np.arange(40.0), np.arange(40.0)]))
    for fold in folds:
        values, counts = np.unique(fold, return_counts=True)
        assert len(values) == 8
        assert (counts == 2).all()


def test_levels_do_not_stay_together():
    """Rows of a column with few values are samples of their own."""
    levels = np.repeat([[0.0], [1.0], [2.0], [3.0]], 10, axis=0)
    for fold in targets_of_folds(levels, np.repeat(np.arange(4.0), 10)):
        assert len(set(fold)) > 1


def test_rows_of_weight_zero_are_in_no_split():
    weight = np.where(np.arange(40) < 4, 0.0, 2.0)
    assert sum(map(len, targets_of_folds(X, Y, sample_weight=weight))) == 36
    given = [(np.arange(20), np.arange(20, 40)), (np.arange(20, 40), np.arange(20))]
    sizes = [len(test) for _, test in splits_of(X, Y, cv=given, sample_weight=weight)]
    assert sizes == [20, 16]


def test_a_validation_set_of_values():
    ((train, test),) = splits_of(X[:30], Y[:30], cv=(X[30:], Y[30:]))
    assert len(train) == 30
    np.testing.assert_array_equal(test.targets, Y[30:])


@pytest.mark.parametrize(
    ("cv", "message"),
    [
        ((X, Y[:5]), "40 rows and 5 values"),
        ((X, np.eye(40)), r"have shape \(40, 40\), those of training \(40,\)"),
        ((X, np.where(np.arange(40), Y, np.nan)), "contain NaN"),
        ((X, ["a"] * 40), "y_val"),
        ([([0], np.arange(40))], "leaves 1 training samples"),
        ([(np.arange(40), [])], "Split 0 has no test samples"),
        ((X,), "cv is a tuple of 1"),
    ],
)
def test_bad_splits(cv, message):
    with pytest.raises(ValueError, match=message):
        splits_of(X, Y, cv=cv)


def test_samples_that_are_all_equal_are_samples_of_their_own():
    assert sum(map(len, targets_of_folds(np.ones((4, 2)), np.arange(4.0)))) == 4


# -- scores of held-out values ---------------------------------------------------------------


@pytest.mark.parametrize("targets", [(9,), (9, 2)])
def test_any_scorer_judges_values(targets):
    rng = np.random.default_rng(1)
    stack = rbf_grid([1.0]).fit(X)(X)
    tests = [
        Samples(stack, rng.normal(size=targets), counts=rng.uniform(1, 2, 9)) for _ in range(2)
    ]
    parts = [SplitOutputs.unsolved((2, 3), targets) for _ in tests]
    certificate = Certificate(1.0, 1.0, 0.0, 1e-4)
    for k, at in [(0, (0, 0)), (1, (0, 0)), (0, (1, 2))]:
        progress = parts[k].note(at, GRID.at(at), rng.normal(size=targets), certificate, 2)
        assert progress.iteration == parts[k].record.n_solved
    scores = HeldOutValues(parts, tests).scores(make_scorer(mean_absolute_error))
    for k in range(2):
        expected = mean_absolute_error(
            tests[k].targets, parts[k].outputs[0, 0], sample_weight=tests[k].counts
        )
        assert scores[k, 0, 0] == pytest.approx(expected)
    assert np.isnan(scores).sum() == 2 * 6 - 2


# -- plain weights among the candidates ------------------------------------------------------


def chosen_penalty(scores, losses):
    """The penalty that is chosen by scores of splits, (n_splits, 3), and losses of samples."""
    grid = Grid({"C": np.array([1.0]), "penalty": np.array([np.inf, 0.1, 0.01])})
    table = np.array(scores, dtype=float)[:, None, :]
    record = GridRecord(np.zeros((1, 3)), np.ones((1, 3), int), np.ones((1, 3), bool), [])
    estimator = SimpleNamespace(tol=1e-3, scoring=None, one_standard_error=False)
    judged = [HeldOutLosses(np.array(own, dtype=float), np.zeros(len(own))) for own in losses]
    held_out = SimpleNamespace(
        scores=lambda scorer: table,
        records=[record] * len(table),
        losses_at=lambda at: judged[at[-1]],
        loss_breaks_ties=False,
    )
    choice = Choice.of(estimator, grid, held_out, None)
    return choice.params["penalty"]


PLAIN_LOSSES = np.linspace(0.5, 1.5, 16)
# Differences of mean 0.1 and standard deviation 0.4: the mean is one standard error.
NOISY_GAINS = 0.1 + 0.4 * np.resize([-1, 1], 16)


def test_a_gate_is_chosen_if_its_loss_is_clearly_less_than_that_of_plain_weights():
    clear, noisy = PLAIN_LOSSES - 0.2, PLAIN_LOSSES - NOISY_GAINS
    assert chosen_penalty([[0.8, 0.8, 0.7]], [PLAIN_LOSSES, clear, clear]) == 0.1
    assert chosen_penalty([[0.8, 0.9, 0.7]], [PLAIN_LOSSES, noisy, clear]) == np.inf
    # 2.1 standard errors are enough.
    gains = NOISY_GAINS + 0.11
    assert chosen_penalty([[0.8, 0.9, 0.7]], [PLAIN_LOSSES, PLAIN_LOSSES - gains, clear]) == 0.1


def test_of_gates_with_no_lower_score_the_one_with_the_least_loss_is_chosen():
    losses = [PLAIN_LOSSES, PLAIN_LOSSES - 0.2, PLAIN_LOSSES - 0.3]
    assert chosen_penalty([[0.8, 0.9, 0.8]], losses) == 0.01
    assert chosen_penalty([[0.8, 0.9, 0.79]], losses) == 0.1
    assert chosen_penalty([[0.8, 0.7, 0.79]], losses) == np.inf


@pytest.mark.parametrize("weighted", [False, True])
def test_losses_of_held_out_samples(weighted):
    rng = np.random.default_rng(0)
    stack = KernelStack.from_arrays(np.zeros((1, 9, 3)))
    counts = [rng.uniform(1, 2, 9) if weighted else None for _ in range(2)]
    tests = [Samples(stack, rng.normal(size=9), counts=own) for own in counts]
    parts = [SplitOutputs.unsolved((1,), (9,)) for _ in tests]
    for part in parts:
        part.outputs[0] = rng.normal(size=9)
    judged = HeldOutValues(parts, tests).losses_at((0,))
    expected = mean_squared_error(
        np.concatenate([test.targets for test in tests]),
        np.concatenate([part.outputs[0] for part in parts]),
        sample_weight=np.concatenate(counts) if weighted else None,
    )
    assert judged.loss == pytest.approx(expected)
