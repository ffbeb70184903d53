"""Leave-one-out in closed form against refits, sample by sample."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_iris
from sklearn.metrics import average_precision_score, brier_score_loss

from manykernels import KernelStack, rbf_grid
from manykernels.losses.square import SquareLoss
from manykernels.model_selection import leave_one_out
from manykernels.model_selection.leave_one_out import left_out_outputs
from tests.problems import labels_for, random_gram_matrices


def refit_without(gram, targets, reg, weight, i):
    """Outputs at i of weighted ridge regression with an intercept on all other samples."""
    keep = ~np.isin(np.arange(len(gram)), i)
    W = np.diag(weight[keep])
    K, k, H = gram[np.ix_(keep, keep)], gram[i][..., keep], targets[keep]
    n = len(K)
    ones = np.ones((n, 1))
    system = np.block([[K + reg * np.linalg.inv(W), ones], [ones.T, np.zeros((1, 1))]])
    solution = np.linalg.solve(system, np.vstack([H, np.zeros((1, H.shape[1]))]))
    return k @ solution[:-1] + solution[-1]


@given(
    seed=st.integers(0, 10**6),
    n_columns=st.sampled_from([1, 5]),
    weighted=st.booleans(),
    reg=st.sampled_from([1e-2, 1.0, 30.0]),
)
@settings(max_examples=25, deadline=None)
def test_closed_form_is_brute_force(seed, n_columns, weighted, reg):
    rng = np.random.default_rng(seed)
    gram = random_gram_matrices(1, 14, seed)[0]
    weight = rng.uniform(0.3, 3.0, 14) if weighted else np.ones(14)
    targets = rng.standard_normal((14, n_columns))
    targets -= np.average(targets, axis=0, weights=weight)
    means = weight @ gram / weight.sum()
    centred = gram - means - means[:, None] + means @ weight / weight.sum()
    ours = left_out_outputs(centred, targets, np.array([reg]), weight)[0]
    brute = np.array([refit_without(gram, targets, reg, weight, i) for i in range(14)])
    np.testing.assert_allclose(ours, brute, rtol=1e-6, atol=1e-7)


@given(seed=st.integers(0, 10**6), weighted=st.booleans(), reg=st.sampled_from([1e-2, 1.0, 30.0]))
@settings(max_examples=25, deadline=None)
def test_groups_are_left_out_together(seed, weighted, reg):
    rng = np.random.default_rng(seed)
    gram, groups = random_gram_matrices(1, 14, seed)[0], rng.integers(0, 5, 14)
    weight = rng.uniform(0.3, 3.0, 14) if weighted else np.ones(14)
    targets = rng.standard_normal((14, 2))
    targets -= np.average(targets, axis=0, weights=weight)
    means = weight @ gram / weight.sum()
    centred = gram - means - means[:, None] + means @ weight / weight.sum()
    ours = left_out_outputs(centred, targets, np.array([reg]), weight, groups)[0]
    for group in np.unique(groups):
        rows = np.flatnonzero(groups == group)
        brute = refit_without(gram, targets, reg, weight, rows)
        np.testing.assert_allclose(ours[rows], brute, rtol=1e-6, atol=1e-7)


def test_noise_of_groups_is_not_learnt():
    rng = np.random.default_rng(0)
    groups = np.repeat([f"p{k}" for k in range(40)], 5)
    X = np.repeat(rng.standard_normal((40, 3)), 5, axis=0) + 1e-3 * rng.standard_normal((200, 3))
    y = np.repeat(np.arange(40) % 2, 5)
    stack = rbf_grid([1.0]).fit(X)(X)
    assert leave_one_out(stack, y, [1e-2]).accuracy[0] > 0.97
    result = leave_one_out(stack, y, [1e-2], groups=groups)
    assert abs(result.accuracy[0] - 0.5) < 0.2
    assert result.brier[0] > 0.2
    single = leave_one_out(stack, y, [1e-2], groups=np.arange(200)[::-1])
    plain = leave_one_out(stack, y, [1e-2])
    np.testing.assert_allclose(single.decisions, plain.decisions, rtol=1e-12, atol=1e-12)
    with pytest.raises(ValueError, match="All rows are of one group, 'a'"):
        leave_one_out(stack, y, [1e-2], groups=["a"] * 200)
    with pytest.raises(ValueError, match="Class 0 has rows of one group only"):
        leave_one_out(stack, y, [1e-2], groups=y)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_all_regs_of_one_decomposition_are_those_of_the_loss(n_classes, weighted):
    matrices = random_gram_matrices(3, 30)
    y = labels_for(30, n_classes)
    weight = np.random.default_rng(0).uniform(0.5, 2, 30) if weighted else None
    kernel_weights = np.array([0.2, 0.5, 0.3])
    regs = np.logspace(-3, 2, 6)
    stack = KernelStack.from_arrays(matrices)
    result = leave_one_out(stack, y, regs, weights=kernel_weights, sample_weight=weight)
    from manykernels.kernels.transforms import preparation

    prepared = preparation("multiplicative").fit_transform(stack, sample_weight=weight)
    for reg, outputs in zip(regs, result.outputs, strict=True):
        point = SquareLoss(prepared, result.targets, reg, weight).evaluate(kernel_weights)
        np.testing.assert_allclose(outputs, point.leave_one_out(), rtol=1e-6, atol=1e-9)


def test_scores_are_those_of_the_decisions():
    X, y = load_iris(return_X_y=True)
    stack = rbf_grid([0.1, 1.0]).fit(X)(X)
    result = leave_one_out(stack, y, [0.1, 10.0])
    assert result.decisions.shape == (2, 150, 3)
    np.testing.assert_allclose(
        result.accuracy, [np.mean(scores.argmax(1) == y) for scores in result.decisions]
    )
    assert result.accuracy.min() > 0.9
    np.testing.assert_allclose(
        result.average_precision,
        [average_precision_score(np.eye(3)[y], scores) for scores in result.decisions],
    )
    assert ((result.brier > 0) & (result.brier < 0.3)).all()
    assert (result.mse < np.mean(result.targets**2)).all()


def test_two_classes_and_string_labels():
    X, y = load_iris(return_X_y=True)
    names = np.array(["a", "b"])[(y == 2).astype(int)]
    result = leave_one_out(rbf_grid([0.1]).fit(X)(X), names, [1.0])
    assert result.decisions.shape == (1, 150)
    positive = 1 / (1 + np.exp(-result.decisions[0]))
    assert result.brier[0] == pytest.approx(brier_score_loss(y == 2, positive))
    assert result.classes.tolist() == ["a", "b"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"regs": []}, "regs must be a non-empty list"),
        ({"regs": [0.0]}, "each positive"),
        ({"regs": [1.0, 1.0]}, "equal values"),
        ({"regs": [np.inf]}, "regs must be finite"),
        ({"y": np.zeros(30, int)}, "at least 2 classes"),
        ({"y": np.arange(29) % 2}, "inconsistent numbers of samples"),
        ({"weights": [1.0]}, "One weight per kernel"),
        ({"sample_weight": np.zeros(30)}, "one positive number per sample"),
        ({"sample_weight": np.ones(3)}, "one positive number per sample"),
    ],
)
def test_bad_input(change, message):
    stack = KernelStack.from_arrays(random_gram_matrices(2, 30))
    options = {"y": np.arange(30) % 2, "regs": [1.0], **change}
    with pytest.raises(ValueError, match=message):
        leave_one_out(stack, options.pop("y"), options.pop("regs"), **options)
