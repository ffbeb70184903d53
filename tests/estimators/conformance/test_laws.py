"""Laws that every fit with a convex objective obeys."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from manykernels import MKFDA, MKSVC, MKSVR, KernelStack, MKRidge
from tests.estimators.random_problems import (
    N_KERNELS,
    N_TRAIN,
    NORMALIZATIONS,
    C,
    Problem,
    few,
    lawful,
    norms,
    seeds,
)
from tests.estimators.registry import ONE_OF_EACH, those
from tests.problems import slow

every_kind = lawful()
# At unit trace and a small C all samples are within the margin, and no bias is better than others.
determined = st.sampled_from(["multiplicative", "spherical", None])

# -- symmetries ------------------------------------------------------------------------------


@every_kind
@few
@given(seed=seeds, p=norms)
def test_permuted_kernels_permute_the_weights(entry, seed, p):
    problem = Problem(entry, seed)
    order = np.random.default_rng(seed).permutation(N_KERNELS)
    model, permuted = problem.fit(p=p), problem.fit(problem.train[order], p=p)
    problem.assert_same_optimum(permuted, model)
    problem.assert_close(permuted.weights_, model.weights_[..., order])
    decision = problem.decide(permuted, problem.test[order], problem.test_diag[order])
    problem.assert_close(decision, problem.decide(model))


@every_kind
@few
@given(seed=seeds, p=norms)
def test_the_order_of_samples_does_not_matter(entry, seed, p):
    problem = Problem(entry, seed)
    expected = problem.fit(p=p)
    order = np.random.default_rng(seed).permutation(N_TRAIN)
    train, test = problem.train[:, order][:, :, order], problem.test[:, :, order]
    shuffled = problem.fit(train, problem.y[order], p=p)
    problem.assert_same_optimum(shuffled, expected)
    problem.assert_close(problem.decide(shuffled, test), problem.decide(expected))
    if entry.square:
        problem.assert_close(shuffled.weights_, expected.weights_)
        problem.assert_close(shuffled.dual_coef_, expected.dual_coef_[order])


@lawful(lambda entry: entry.target == "two")
@few
@given(seed=seeds, p=norms, normalize=determined)
def test_swapping_two_classes_turns_the_decision_round(entry, seed, p, normalize):
    problem = Problem(entry, seed)
    model = problem.fit(p=p, normalize=normalize)
    swapped = problem.fit(y=1 - problem.y, p=p, normalize=normalize)
    problem.assert_close(problem.decide(swapped), -problem.decide(model))
    if entry.has_support:
        assert_array_equal(swapped.n_support_, model.n_support_[::-1])


@pytest.mark.filterwarnings("ignore:Nothing can be learnt from kernels")
@every_kind
@few
@given(seed=seeds, p=norms, normalize=st.sampled_from(NORMALIZATIONS))
def test_a_zero_kernel_changes_no_prediction(entry, seed, p, normalize):
    problem = Problem(entry, seed)
    settings = {"p": p, "normalize": normalize}
    if entry.square:
        # At unit trace F is flat: within a gap of 1e-9 weights can move by 1e-4.
        settings["tol"] = 1e-11
    elif normalize == "trace" and entry.options.get("C") == C:
        settings["C"] = C * N_TRAIN
    model = problem.fit(**settings)
    train, test, test_diag = problem.with_kernel_inserted(0.0)
    padded = problem.fit(train, **settings)
    problem.assert_same_optimum(padded, model)
    problem.assert_close(problem.decide(padded, test, test_diag), problem.decide(model))
    if entry.square:
        problem.assert_close(np.delete(padded.weights_, 1, axis=-1), model.weights_)
        assert not padded.weights_[..., 1].any() or p > 1
    if p < np.inf:
        assert np.all(padded.weights_[..., 1] <= 1e-4)


@every_kind
@few
@given(seed=seeds, share=st.floats(0.1, 0.9))
def test_a_split_kernel_keeps_the_optimum_at_p_1(entry, seed, share):
    problem = Problem(entry, seed)
    parts = [share * problem.train[0], (1 - share) * problem.train[0]]
    settings = {"p": 1, "normalize": None}
    rtol = None
    if entry.square:
        settings["tol"], rtol = 1e-7, 2e-7
    model = problem.fit(**settings)
    # Parts beside the whole, and the whole twice, add no point to the convex hull.
    for extra in (parts, problem.train[:1]):
        split = problem.fit(np.array([*extra, *problem.train]), **settings)
        problem.assert_same_optimum(split, model, rtol=rtol)


@every_kind
@few
@given(
    seed=seeds,
    p=norms,
    normalize=st.sampled_from(["multiplicative", "spherical", "trace"]),
    exponents=st.lists(st.floats(-6, 6), min_size=N_KERNELS, max_size=N_KERNELS),
)
def test_normalised_kernels_have_no_scale(entry, seed, p, normalize, exponents):
    problem = Problem(entry, seed)
    params = {"p": p, "normalize": normalize}
    if normalize == "trace" and entry.options.get("C") == C:
        params["C"] = C * N_TRAIN
    model = problem.fit(**params)
    train, test, test_diag = problem.scaled(10.0 ** np.array(exponents))
    scaled = problem.fit(train, **params)
    problem.assert_same_optimum(scaled, model)
    problem.assert_close(problem.decide(scaled, test, test_diag), problem.decide(model))
    if entry.square:
        problem.assert_close(scaled.weights_, model.weights_)


@lawful(lambda entry: entry.target != "none")
@few
@given(
    seed=seeds,
    shift=st.floats(0, 100),
    p=norms,
    normalize=st.sampled_from(["multiplicative", "trace", None]),
)
def test_adding_a_constant_to_a_kernel_changes_nothing(entry, seed, shift, p, normalize):
    problem = Problem(entry, seed)
    shifts = np.array([0.0, shift, 0.0, 1.0])[:, None, None]
    model = problem.fit(p=p, normalize=normalize)
    moved = problem.fit(problem.train + shifts, p=p, normalize=normalize)
    problem.assert_same_optimum(moved, model)
    problem.assert_close(problem.decide(moved, problem.test + shifts), problem.decide(model))
    if entry.square:
        problem.assert_close(moved.weights_, model.weights_)


def test_for_one_class_the_origin_matters():
    problem = Problem("MKOneClassSVM", 0)
    model = problem.fit()
    moved = problem.fit(problem.train + 1.0)
    assert not np.allclose(problem.decide(moved, problem.test + 1.0), problem.decide(model))


# -- limits ----------------------------------------------------------------------------------


@every_kind
@few
@given(seed=seeds)
def test_the_largest_norm_is_the_plain_sum(entry, seed):
    problem = Problem(entry, seed)
    model = problem.fit(p=np.inf, normalize=None)
    assert_array_equal(model.weights_, np.ones_like(model.weights_))
    assert model.n_iter_ == (3 if entry.separate else 1)
    parts = (problem.train, problem.test, problem.test_diag)
    train, test, test_diag = (part.sum(axis=0)[None] for part in parts)
    alone = problem.fit(train, p=np.inf, normalize=None)
    problem.assert_same_optimum(alone, model)
    decision, tolerance = problem.decide(model), 1e-9 if entry.square else 1e-6
    problem.assert_close(decision, problem.decide(alone, test, test_diag), tolerance)


@every_kind
@few
@given(seed=seeds, normalize=st.sampled_from(["multiplicative", None]))
def test_a_large_norm_is_nearly_the_largest(entry, seed, normalize):
    problem = Problem(entry, seed)
    large, largest = (problem.fit(p=p, normalize=normalize) for p in (1e6, np.inf))
    assert_allclose(large.weights_, largest.weights_, atol=1e-4)
    problem.assert_close(problem.decide(large), problem.decide(largest))


@every_kind
@few
@given(seed=seeds)
def test_a_larger_ball_has_a_smaller_minimum(entry, seed):
    problem = Problem(entry, seed)
    values = [problem.fit(p=p).certificate_.primal for p in (1, 1 + 1e-4, 1.1, 2, np.inf)]
    assert np.all(np.diff(values) <= 1e-8 * abs(values[0]))
    assert_allclose(values[1], values[0], rtol=1e-3)


# -- weights of samples ----------------------------------------------------------------------


@every_kind
@few
@given(seed=seeds, p=norms, normalize=determined)
def test_an_integer_weight_is_repetition(entry, seed, p, normalize):
    problem = Problem(entry, seed)
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 3, size=N_TRAIN)
    counts[:6] = 1
    # All classes are there, and again in another number.
    if entry.square or len(np.unique(problem.y[counts > 0])) < len(np.unique(problem.y)):
        counts = rng.integers(1, 4, size=N_TRAIN)
    rows = np.repeat(np.arange(N_TRAIN), counts)
    params = {"p": p, "normalize": normalize}
    weighted = problem.fit(sample_weight=counts, **params)
    repeated = problem.fit(problem.train[:, rows][:, :, rows], problem.y[rows], **params)
    problem.assert_same_optimum(weighted, repeated, rtol=1e-7 if entry.square else None)
    problem.assert_close(
        problem.decide(weighted), problem.decide(repeated, problem.test[:, :, rows])
    )
    if entry.square:
        problem.assert_close(weighted.weights_, repeated.weights_)
        if entry.discriminant:
            problem.assert_close(weighted.priors_, repeated.priors_, 1e-12)
    elif entry.has_support:
        assert np.all(counts[weighted.support_] > 0)


# -- certificate -----------------------------------------------------------------------------


@lawful(lambda entry: not entry.separate)
@few
@given(seed=seeds, p=norms)
def test_history_leads_down_to_the_certificate(entry, seed, p):
    model = Problem(entry, seed).fit(p=p)
    history = model.history_
    assert {len(values) for values in history.values()} == {model.n_iter_}
    objective = np.array(history["objective"])
    rounding = (1e-10 if entry.square else 1e-9) * abs(objective[0])
    assert np.all(np.diff(objective) <= rounding)
    assert np.all(np.diff(history["n_inner_solves"]) >= 1)
    assert history["rel_gap"][-1] == model.certificate_.rel_gap
    assert objective[-1] == model.certificate_.primal
    assert history["n_inner_solves"][-1] == model.n_inner_solves_


@every_kind
@few
@given(seed=seeds, p=st.sampled_from([1, 1.1, 2]))
def test_a_loose_answer_is_within_its_gap_of_the_best(entry, seed, p):
    problem = Problem(entry, seed)
    loose, tight = problem.fit(p=p, tol=0.1).certificate_, problem.fit(p=p).certificate_
    rounding = 1e-9 * abs(tight.primal)
    assert loose.dual <= tight.primal + rounding
    best = tight.primal if entry.square else tight.dual
    assert best <= loose.primal + rounding


# -- what it is for --------------------------------------------------------------------------


@those(lambda entry: entry.kind in (MKFDA, MKRidge, MKSVC, MKSVR), ONE_OF_EACH)
@pytest.mark.parametrize("n_classes", [2, *slow(3)])
def test_noise_gets_no_weight_at_p_1(entry, n_classes):
    rng = np.random.default_rng(4)
    y = np.arange(60) % n_classes
    features = np.eye(n_classes)[y] + 0.1 * rng.normal(size=(60, n_classes))
    noise = rng.normal(size=(60, 40))
    stack = KernelStack.from_arrays([noise @ noise.T, features @ features.T])
    target = features[:, 0] if entry.target == "values" else y
    much = {"reg": 10.0} if entry.square else {"C": 0.05}
    sparse = entry.make("precomputed", p=1, **much).fit(stack, target)
    assert sparse.weights_[0] == 0.0
    assert_allclose(sparse.weights_[1], 1.0, rtol=1e-9)
    dense = entry.make("precomputed", p=2, **much).fit(stack, target)
    assert 0 < dense.weights_[0] < dense.weights_[1]
