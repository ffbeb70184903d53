"""Candidate weights of many targets: formulas against refits, and what does not change them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics import r2_score

from manykernels import KernelStack
from manykernels.kernels.transforms import Center
from manykernels.solvers import candidates as module
from manykernels.solvers.candidates import Regression, choose_candidates, explained_variance

M, N_TARGETS, N_KERNELS = 40, 7, 4
RNG = np.random.default_rng(0)
FEATURES = [RNG.normal(size=(M, width)) for width in (2, 3, 30, 60)]
TARGETS = FEATURES[0] @ RNG.normal(size=(2, N_TARGETS)) + RNG.normal(size=(M, N_TARGETS))
FOLDS = np.array_split(RNG.permutation(M), 4)
REGS = np.array([100.0, 1.0, 0.01])
WEIGHT = RNG.uniform(0.5, 3.0, M)
weighted = pytest.mark.parametrize("weight", [None, WEIGHT], ids=["plain", "weighted"])


def regression(weight=None, targets=TARGETS, **changes):
    stack = KernelStack.from_arrays([features @ features.T for features in FEATURES])
    stack = Center().fit_transform(stack, sample_weight=weight)
    centred = targets - np.average(targets, axis=0, weights=weight)
    given = {"folds": FOLDS, "by_folds": False, **changes}
    return Regression(stack, centred, REGS, given["folds"], weight, given["by_folds"])


def refitted(combined, targets, reg, train, test, weight):
    """Predictions of a ridge regression with an intercept that is not penalised."""
    mass = np.ones(M) if weight is None else weight
    roots = np.sqrt(mass[train])
    inner = combined[np.ix_(train, train)] * roots * roots[:, None]
    system = np.block([[inner + reg * np.eye(len(train)), roots[:, None]], [roots, 0.0]])
    right = np.vstack([targets[train] * roots[:, None], np.zeros(targets.shape[1])])
    solution = np.linalg.solve(system, right)
    return combined[np.ix_(test, train)] @ (solution[:-1] * roots[:, None]) + solution[-1]


@weighted
@pytest.mark.parametrize("which", [[1, 0, 0, 0], [0, 0, 0, 1], [0.1, 0.2, 0.3, 0.4]])
def test_residuals_of_folds_are_those_of_refits(weight, which):
    problem = regression(weight)
    spectrum = problem.spectrum(np.array(which, dtype=float))
    combined = problem.kernels.combine(np.array(which, dtype=float))
    rotated = spectrum.rotate(problem.scaled)
    for reg in REGS:
        scores, residuals = problem.fold_scores(spectrum, reg, problem.scaled, rotated)
        for fold, score, errors in zip(FOLDS, scores, residuals, strict=True):
            train = np.setdiff1d(np.arange(M), fold)
            values = refitted(combined, problem.targets, reg, train, fold, weight)
            assert_allclose(problem.targets[fold] - values, errors, rtol=1e-8, atol=1e-10)
            mass = None if weight is None else weight[fold]
            expected = r2_score(
                problem.targets[fold], values, sample_weight=mass, multioutput="raw_values"
            )
            assert_allclose(score, expected, rtol=1e-8)


@weighted
def test_generalised_cross_validation_against_the_hat_matrix(weight):
    problem, which = regression(weight), np.full(N_KERNELS, 0.25)
    roots = problem.roots
    matrix = problem.kernels.combine(which) * roots * roots.T
    constant = roots / np.linalg.norm(roots)
    found = []
    for reg in REGS:
        hat = matrix @ np.linalg.inv(matrix + reg * np.eye(M)) + constant @ constant.T
        residual = problem.scaled - hat @ problem.scaled
        free = 1.0 - np.trace(hat) / M
        found.append((residual**2).sum(axis=0) / (problem.scaled**2).sum(axis=0) / free**2)
    assert_allclose(problem.errors(problem.spectrum(which)), np.min(found, axis=0), rtol=1e-8)


@weighted
@pytest.mark.parametrize("by_folds", [False, True])
def test_the_model_is_the_ridge_regression_at_the_chosen_point(weight, by_folds):
    problem = regression(weight, by_folds=by_folds)
    choice = choose_candidates(problem, each=lambda work, items: list(map(work, items)))
    assert_allclose(choice.weights.sum(axis=1), 1.0)
    everything = np.arange(M)
    for k, (weights, reg) in enumerate(zip(choice.weights, choice.regs, strict=True)):
        combined = problem.kernels.combine(weights)
        expected = refitted(combined, problem.targets[:, [k]], reg, everything, everything, weight)
        assert_allclose(combined @ choice.coefficients[:, k], expected[:, 0], atol=1e-8)


def test_predictions_of_a_fold_do_not_know_its_targets():
    changed = TARGETS.copy()
    changed[FOLDS[1]] = np.random.default_rng(1).normal(size=(len(FOLDS[1]), N_TARGETS))
    # Targets are centred by all rows, whose mean stays.
    changed[FOLDS[1]] += TARGETS[FOLDS[1]].mean(axis=0) - changed[FOLDS[1]].mean(axis=0)
    predictions = []
    for targets in (TARGETS, changed):
        problem = regression(targets=targets)
        spectrum = problem.spectrum(np.full(N_KERNELS, 0.25))
        rotated = spectrum.rotate(problem.scaled)
        _, residuals = problem.fold_scores(spectrum, 1.0, problem.scaled, rotated)
        predictions.append(problem.targets[FOLDS[1]] - residuals[1])
    assert_allclose(*predictions, atol=1e-9)


def test_blocks_of_targets_and_kept_eigenvectors_change_nothing(monkeypatch):
    def serial(work, items):
        return list(map(work, items))

    choice = choose_candidates(regression(), each=serial)
    monkeypatch.setattr(module, "_BLOCK", 2 * M)
    monkeypatch.setattr(module, "_KEPT", 0)
    blocked = choose_candidates(regression(), each=serial)
    for name in ("weights", "regs", "coefficients", "scores", "left_out"):
        assert_allclose(getattr(blocked, name), getattr(choice, name), rtol=1e-8, atol=1e-10)
    assert blocked.n_decompositions > choice.n_decompositions


def test_explained_variance_is_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    truth = np.column_stack([rng.normal(size=8), np.full(8, 3.0), np.full(8, 3.0)])
    errors = np.column_stack([rng.normal(size=(8, 2)), np.zeros(8)])
    for weight in (None, np.arange(1.0, 9.0)):
        expected = r2_score(truth, truth - errors, sample_weight=weight, multioutput="raw_values")
        assert_allclose(explained_variance(truth, errors, weight), expected)
