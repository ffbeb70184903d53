"""Scores and probabilities that new samples confirm, on data made to deceive."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.base import clone, is_classifier
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.metrics import log_loss, r2_score

from manykernels import (
    MKFDA,
    MKFDACV,
    MKSVCCV,
    MKSVRCV,
    ExactFeatures,
    KernelStack,
    LocalizedSVCCV,
    MKLogistic,
    MKLogisticCV,
    MKRidge,
    MKRidgeCV,
    view_importance,
)
from manykernels.kernels import RBF, Cosine, Linear
from manykernels.model_selection import leave_one_out


def kernels_of_noise(seed, m=100, n=200):
    """Kernels that know nothing, and labels in random order."""
    rng = np.random.default_rng(seed)
    points = rng.standard_normal((n, m, 3))
    squares = (points**2).sum(axis=2)
    distances = squares[:, :, None] + squares[:, None] - 2.0 * points @ points.mT
    kernels = np.exp(-distances / distances.mean(axis=(1, 2), keepdims=True))
    stack = KernelStack.from_arrays(0.5 * (kernels + kernels.mT))
    return stack, rng.permutation(np.arange(m) % 2)


def score_on_noise(reg, cv):
    """Mean over ten draws of what MKFDACV claims; held weights would claim nine tenths."""
    scores = []
    for seed in range(10):
        stack, y = kernels_of_noise(seed)
        scores.append(MKFDACV("precomputed", ps=[1], regs=[reg], cv=cv).fit(stack, y).best_score_)
    return np.mean(scores)


@pytest.mark.slow
def test_nothing_is_learnt_from_noise():
    assert abs(score_on_noise(10.0, None) - 0.5) <= 0.05


@pytest.mark.slow
@pytest.mark.parametrize(
    ("reg", "cv"),
    [
        *((reg, None) for reg in (0.01, 0.1, 1.0, 100.0)),
        *((reg, "closed-form") for reg in (0.1, 1.0, 10.0, 100.0)),
    ],
)
def test_nothing_is_learnt_from_noise_at_any_regularisation(reg, cv):
    assert abs(score_on_noise(reg, cv) - 0.5) <= 0.05


# -- what a model says of itself, on noise of two kinds ------------------------------------------


def flat_kernels_of_noise(seed, m=100, n=200):
    """Linear kernels of two columns each, all of them far from the origin."""
    rng = np.random.default_rng(seed)
    points = rng.standard_normal((n, m, 2))
    return KernelStack.from_arrays(1e3 + points @ points.mT), rng.permutation(np.arange(m) % 2)


NOISE = {"gaussian": kernels_of_noise, "low rank, far away": flat_kernels_of_noise}


def draws_of_noise(kind, n_draws, m, n):
    """Kernels, classes and values that have nothing to do with each other."""
    for seed in range(n_draws):
        values = np.random.default_rng(seed + 1000).standard_normal(m)
        yield *NOISE[kind](seed, m, n), values


# Samples, kernels and draws: few of each at every commit, many at `make test-slow`.
FEW_AND_MANY = pytest.mark.parametrize(
    "size", [(50, 40, 6), pytest.param((100, 200, 10), marks=pytest.mark.slow)], ids=str
)
every_noise = pytest.mark.parametrize("kind", NOISE)


@pytest.mark.slow
@FEW_AND_MANY
@every_noise
@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("reg", [0.1, 1.0, 10.0])
def test_left_out_predictions_of_noise(kind, p, reg, size):
    m, n, n_draws = size
    hits, shares, deceived = [], [], []
    for stack, y, values in draws_of_noise(kind, n_draws, m, n):
        classes = MKFDA("precomputed", p=p, reg=reg).fit(stack, y)
        hits.append(np.mean(classes.left_out_log_proba_.argmax(axis=1) == y))
        model = MKRidge("precomputed", p=p, reg=reg).fit(stack, values)
        shares.append(r2_score(values, model.left_out_predictions_))
        # The same weights, held: they have seen every value.
        combined = np.tensordot(np.asarray(stack), model.weights_, axes=1)
        held = MKRidge("precomputed", reg=reg).fit(combined, values)
        deceived.append(r2_score(values, held.left_out_predictions_))
    assert abs(np.mean(hits) - 0.5) <= 0.1
    assert np.mean(shares) <= 0.0
    if p == 1:
        assert np.mean(deceived) >= 0.1


SINGLE_POINTS = {
    "MKSVCCV": MKSVCCV("precomputed", ps=[1], Cs=[1.0]),
    "MKFDACV": MKFDACV("precomputed", ps=[1], regs=[1.0]),
    "MKFDACV, closed form": MKFDACV("precomputed", ps=[1], regs=[1.0], cv="closed-form"),
    "MKSVRCV": MKSVRCV("precomputed", ps=[1], Cs=[1.0], epsilons=[0.1]),
    "MKRidgeCV": MKRidgeCV("precomputed", ps=[1], regs=[1.0]),
    "MKRidgeCV, closed form": MKRidgeCV("precomputed", ps=[1], regs=[1.0], cv="closed-form"),
}


@pytest.mark.slow
@FEW_AND_MANY
@every_noise
@pytest.mark.parametrize("name", SINGLE_POINTS)
def test_scores_of_noise_without_a_choice(name, kind, size):
    """Of a grid of one point, so that the best score is not the best of many."""
    m, n, n_draws = size
    model, scores = SINGLE_POINTS[name], []
    for stack, y, values in draws_of_noise(kind, n_draws, m, n):
        targets = y if is_classifier(model) else values
        scores.append(clone(model).fit(stack, targets).best_score_)
    if is_classifier(model):
        assert abs(np.mean(scores) - 0.5) <= 0.1
    else:
        assert np.mean(scores) <= 0.0


@pytest.mark.slow
@pytest.mark.parametrize("reg", [100.0, 1000.0])
def test_folds_are_not_deceived_where_one_kernel_of_many_is_left(reg):
    """At p = 1 and a large λ, where left-out samples helped to select the kernel."""
    scores, counts = [], []
    for stack, y, _ in draws_of_noise("gaussian", 12, 40, 100):
        model = MKFDACV("precomputed", ps=[1], regs=[reg]).fit(stack, y)
        scores.append(model.best_score_)
        counts.append(np.count_nonzero(model.weights_))
    assert np.mean(counts) < 4
    assert abs(np.mean(scores) - 0.5) <= 0.06


def test_many_classes_of_noise():
    """Twenty classes of five samples: one in twenty is right by chance."""
    for kind in NOISE:
        hits, losses = [], []
        for stack, _, _ in draws_of_noise(kind, 4, 100, 30):
            y = np.random.default_rng(0).permutation(np.arange(100) % 20)
            model = MKFDA("precomputed", p=1, reg=1.0).fit(stack, y)
            hits.append(np.mean(model.left_out_log_proba_.argmax(axis=1) == y))
            losses.append(log_loss(y, np.exp(model.left_out_log_proba_)))
        assert np.mean(hits) <= 0.1
        # Two numbers were chosen to make this small.
        assert np.mean(losses) >= np.log(20) - 2 / 100


def test_probabilities_after_fitting_noise_are_modest():
    for seed in range(3):
        stack, y = kernels_of_noise(seed, m=160)
        train, new = np.arange(80), np.arange(80, 160)
        model = MKFDA("precomputed", p=1, reg=1.0).fit(stack[np.ix_(train, train)], y[train])
        confidence = model.predict_proba(stack[np.ix_(new, train)]).max(axis=1)
        assert confidence.mean() < 0.65


def many_classes(seed, n_rows):
    """27 classes in twelve views of 27 columns, little of each: kernels of joint rank 324."""
    n_classes, n_views, width = 27, 12, 27
    centres = np.random.default_rng(seed).standard_normal((n_views, n_classes, width))
    rng = np.random.default_rng((seed, n_rows))
    rest = rng.integers(0, n_classes, n_rows - 4 * n_classes)
    y = np.concatenate([np.arange(n_classes).repeat(4), rest])
    noise = rng.standard_normal((n_views, n_rows, width))
    return np.hstack([*(0.2 * centres[:, y] + noise)]), y


COSINES = [(f"v{v}", Cosine().on(slice(27 * v, 27 * v + 27))) for v in range(12)]


def confirmed_by_new_samples(cv, ps, n_draws, n_new):
    """Means over draws: what MKFDACV claims, what is true, how sure the model is."""
    found = []
    for seed in range(n_draws):
        X, y = many_classes(seed, 347)
        new, truth = many_classes(seed, n_new)
        model = MKFDACV(COSINES, ps=ps, regs=[1e-4, 1.0, 100.0], cv=cv).fit(X, y)
        chances = model.predict_proba(new)
        accuracy = np.mean(model.classes_[chances.argmax(axis=1)] == truth)
        found.append([model.best_score_, accuracy, chances.max(axis=1).mean()])
    return np.mean(found, axis=0)


@pytest.mark.slow
def test_many_classes_and_low_rank():
    estimate, accuracy, confidence = confirmed_by_new_samples(None, [np.inf], 5, 1000)
    assert abs(estimate - accuracy) <= 0.04
    assert abs(confidence - accuracy) <= 0.03


@pytest.mark.slow
@pytest.mark.parametrize("cv", [None, "closed-form"])
def test_many_classes_and_low_rank_at_several_norms(cv):
    estimate, accuracy, confidence = confirmed_by_new_samples(cv, [1, 2, np.inf], 10, 5000)
    assert abs(estimate - accuracy) <= 0.04
    assert abs(confidence - accuracy) <= 0.03


@pytest.mark.parametrize("n_classes", [3, 8])
@pytest.mark.parametrize("model", [MKFDA(reg=0.1), MKFDACV(ps=[2.0])], ids=["MKFDA", "MKFDACV"])
def test_classes_on_a_line_are_not_masked(n_classes, model):
    """Regression on indicators never chooses the classes in the middle."""
    differences = []
    for seed in range(4):
        rng = np.random.default_rng(seed)

        def line(n_rows, rng=rng):
            y = rng.integers(0, n_classes, n_rows)
            return np.c_[y + 0.25 * rng.standard_normal(n_rows), rng.standard_normal(n_rows)], y

        (X, y), (new, truth) = line(200), line(5000)
        model = clone(model).set_params(kernels=[("linear", Linear())]).fit(X, y)
        assert model.rule_ == "discriminant"
        reference = LinearDiscriminantAnalysis().fit(X, y).score(new, truth)
        differences.append(model.score(new, truth) - reference)
    assert np.mean(differences) >= -0.02


@pytest.mark.slow
@pytest.mark.parametrize(("n_classes", "reg"), [(2, 0.1), (5, 1e-3), (5, 0.1), (5, 10.0)])
def test_probabilities_are_as_sure_as_they_are_right(n_classes, reg):
    gaps, regrets = [], []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        centres = 1.5 * rng.standard_normal((n_classes, 4))

        def draw(n_rows, rng=rng, centres=centres):
            y = rng.integers(0, n_classes, n_rows)
            return centres[y] + rng.standard_normal((n_rows, 4)), y

        (X, y), (new, truth) = draw(150), draw(3000)
        model = MKFDA([("a", RBF()), ("b", Linear())], reg=reg).fit(X, y)
        logs = model.predict_log_proba(new)
        right = np.mean(logs.argmax(axis=1) == truth)
        gaps.append(np.exp(logs.max(axis=1)).mean() - right)
        regrets.append(log_loss(truth, np.exp(logs)) - tempered_loss(logs, truth))
    assert np.mean(regrets) <= 0.02
    # With hardly any regularisation outputs have heavy tails, for which no temperature is right.
    assert abs(np.mean(gaps)) <= (0.03 if reg >= 0.1 else 0.1)


def tempered_loss(logs, truth):
    """The least log loss that another temperature, chosen on the new samples, could give."""
    factors = np.geomspace(0.3, 3.0, 31)
    return min(log_loss(truth, softmax(factor * logs, axis=1)) for factor in factors)


def test_separable_classes_have_finite_scores():
    X = np.r_[np.random.default_rng(0).standard_normal((30, 2)), [[50, 50]] * 15 + [[51, 50]] * 15]
    y = np.repeat([0, 1], 30)
    model = MKFDA(reg=0.1).fit(X, y)
    assert np.isfinite(model.decision_function(X)).all()
    # The rule of succession: 60 samples without a mistake prove no more than this.
    assert 0.95 < model.predict_proba(X).max(axis=1).mean() < 0.9999


def test_priors_shift_the_probabilities_of_either_rule():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 200)
    X = np.c_[y, y**2] + rng.standard_normal((200, 2))
    usual = MKFDA(reg=0.1).fit(X, y)
    priors = np.array([0.7, 0.2, 0.1])
    shifted = MKFDA(reg=0.1, priors=priors).fit(X, y)
    expected = usual.predict_proba(X) * priors / usual.priors_
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(shifted.predict_proba(X), expected, rtol=1e-8)
    without = MKFDA(reg=0.1, priors=[0.5, 0.5, 0.0]).fit(X, y)
    assert not without.predict_proba(X)[:, 2].any()


def test_left_out_decisions_are_not_trained_on_themselves():
    """Class means of left-out outputs, scored on these, know every label at a small λ."""
    regs = [1e-3, 100.0]
    estimates, accuracies = [], []
    for seed in range(4):
        X, y = many_classes(seed, 347)
        new, truth = many_classes(seed, 2000)
        stack = KernelStack.from_arrays([k.fit(X)(X) for _, k in COSINES])
        estimates.append(leave_one_out(stack, y, regs).accuracy)
        models = [MKFDA(COSINES, p=np.inf, reg=reg).fit(X, y) for reg in regs]
        accuracies.append([model.score(new, truth) for model in models])
    np.testing.assert_allclose(np.mean(estimates, 0), np.mean(accuracies, 0), atol=0.04)


def test_left_out_scores_count_sample_weights():
    X, y = many_classes(0, 347)
    stack = KernelStack.from_arrays([k.fit(X)(X) for _, k in COSINES[:2]])
    weight = np.where(y < 14, 1.0, 1e-6)
    weighted = leave_one_out(stack, y, [10.0], sample_weight=weight)
    hits = weighted.decisions[0].argmax(axis=1) == y
    assert weighted.accuracy[0] == pytest.approx(np.average(hits, weights=weight))
    assert weighted.accuracy[0] != pytest.approx(hits.mean(), abs=0.01)
    assert np.mean(weighted.decisions[0].argmax(axis=1) < 14) > 0.99


# -- equal rows --------------------------------------------------------------------------------


def doses(rng):
    """Numbers that depend on one of six levels of a column."""
    effects = 2.0 * rng.standard_normal(6)

    def draw(n_rows):
        levels = rng.integers(0, 6, n_rows)
        return levels[:, None] * 1.0, effects[levels] + 0.3 * rng.standard_normal(n_rows)

    return *draw(120), *draw(2000)


def categories(rng):
    """Classes whose frequencies depend on one of eight categories."""
    chances = rng.random(8)

    def draw(n_rows):
        category = rng.integers(0, 8, n_rows)
        return np.eye(8)[category], (rng.random(n_rows) < chances[category]).astype(int)

    return *draw(400), *draw(2000)


def repeated_classes(rng):
    """Every row of a training table twice, with classes that are noise."""
    X, y = rng.standard_normal((300, 5)), rng.permutation(np.arange(300) % 2)
    return np.repeat(X, 2, axis=0), np.repeat(y, 2), *_new_noise(rng)


def repeated_values(rng):
    X = rng.standard_normal((300, 5))
    y = X[:, 0] + rng.standard_normal(300)
    new = rng.standard_normal((2000, 5))
    truth = new[:, 0] + rng.standard_normal(2000)
    return np.repeat(X, 2, axis=0), np.repeat(y, 2), new, truth


def _new_noise(rng):
    return rng.standard_normal((2000, 5)), rng.permutation(np.arange(2000) % 2)


EQUAL_ROWS = {
    "MKRidgeCV, doses": (MKRidgeCV(), doses),
    "MKSVRCV, doses": (MKSVRCV(ps=[2], epsilons=[0.1]), doses),
    "MKFDACV, categories": (MKFDACV(), categories),
    "MKSVCCV, categories": (MKSVCCV(ps=[2]), categories),
    "MKFDACV, repeats": (MKFDACV(), repeated_classes),
    "MKFDACV, closed form": (MKFDACV(ps=[2], regs=[1.0], cv="closed-form"), repeated_classes),
    "MKSVCCV, repeats": (MKSVCCV(ps=[2]), repeated_classes),
    "MKRidgeCV, repeats": (MKRidgeCV(), repeated_values),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", EQUAL_ROWS)
def test_scores_of_equal_rows_are_confirmed_by_new_rows(name):
    model, draw = EQUAL_ROWS[name]
    differences = []
    for seed in range(20):
        X, y, new, truth = draw(np.random.default_rng(seed))
        fitted = clone(model).fit(X, y)
        differences.append(fitted.left_out_score_ - fitted.score(new, truth))
    # Repeats that are divided between folds would make the score 0.3 to 0.5 too high.
    assert abs(np.mean(differences)) <= 0.03


@pytest.mark.parametrize("draw", [doses, repeated_values])
def test_left_out_rows_of_a_ridge_regression_are_confirmed_by_new_rows(draw):
    differences = []
    for seed in range(8):
        X, y, new, truth = draw(np.random.default_rng(seed))
        model = MKRidge(RBF(), reg=0.3).fit(X, y)
        differences.append(r2_score(y, model.left_out_predictions_) - model.score(new, truth))
    # The standard error is 0.04. Of repeats left out one by one the score would be 0.4 too high.
    assert abs(np.mean(differences)) <= 0.12


@pytest.mark.parametrize("scale", [0.2, 5.0, 30.0])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_unit_of_sample_weights_does_not_matter(n_classes, scale):
    """If λ is measured in the same unit. A row is left out whole, whatever its weight."""
    rng = np.random.default_rng(3)
    y = rng.integers(0, n_classes, 120)
    X = rng.standard_normal((120, 4)) + 0.8 * np.eye(4)[y]
    weight = rng.integers(1, 6, 120) / 2
    for model in (MKFDA(reg=0.3), MKFDACV(ps=[1, 2], regs=[0.1, 1.0])):
        regs = {
            name: value for name, value in model.get_params().items() if name in ("reg", "regs")
        }
        scaled = {name: np.multiply(value, scale) for name, value in regs.items()}
        scaled = {name: value if value.ndim else float(value) for name, value in scaled.items()}
        plain = clone(model).fit(X, y, weight)
        other = clone(model).set_params(**scaled).fit(X, y, scale * weight)
        np.testing.assert_allclose(
            other.left_out_log_proba_, plain.left_out_log_proba_, rtol=1e-4, atol=1e-4
        )
        np.testing.assert_allclose(
            other.predict_log_proba(X), plain.predict_log_proba(X), rtol=1e-4, atol=1e-4
        )


def test_weights_above_one_do_not_make_left_out_rows_look_better():
    """Left-out log loss against that of new rows, at three units of the same weights."""
    rng = np.random.default_rng(0)

    def draw(n_rows):
        y = rng.integers(0, 2, n_rows)
        return rng.standard_normal((n_rows, 6)) + y[:, None] * [1.2, 0, 0, 0, 0, 0], y

    (X, y), (new, truth) = draw(150), draw(3000)
    weight = rng.integers(1, 6, 150).astype(float)
    for unit in (0.2, 1.0, 5.0):
        model = MKFDA(reg=0.01).fit(X, y, unit * weight)
        left_out = log_loss(y, np.exp(model.left_out_log_proba_), sample_weight=weight)
        assert abs(left_out - log_loss(truth, model.predict_proba(new))) <= 0.12


# -- classes that no fold can test ---------------------------------------------------------------


def lonely_class(n=24):
    """Two columns, and labels of which one occurs once."""
    X = np.random.default_rng(0).normal(size=(n, 2))
    return X, np.where(np.arange(n) == 5, "rare", "common")


SEARCHES = {
    "MKFDACV": MKFDACV(Linear(), ps=[2]),
    "closed form": MKFDACV(Linear(), ps=[2], cv="closed-form"),
    "features": MKFDACV(Linear(), ps=[2], approximation=ExactFeatures()),
    "MKSVCCV": MKSVCCV(Linear(), ps=[2], Cs=[1.0]),
    "MKLogisticCV": MKLogisticCV(Linear(), ps=[2], regs=[1.0]),
    "LocalizedSVCCV": LocalizedSVCCV(Linear(), ps=[2], Cs=[1.0]),
}


def warns_of_rare_class():
    return pytest.warns(UserWarning, match="Class 'rare' has a single sample.* no fold tests it")


@pytest.mark.parametrize("name", SEARCHES)
def test_a_class_that_no_fold_tests_is_told(name):
    X, y = lonely_class()
    with warns_of_rare_class():
        clone(SEARCHES[name]).fit(X, y)


def test_repeats_of_one_sample_are_one():
    X, y = lonely_class()
    X[7], y[7] = X[5], y[5]
    with warns_of_rare_class():
        clone(SEARCHES["MKFDACV"]).fit(X, y)


def test_a_label_that_no_fold_tests_is_told():
    X, y = lonely_class()
    labels = np.column_stack([np.arange(24) % 2, y == "rare"]).astype(int)
    with pytest.warns(UserWarning, match="Class 1 of label 1 has a single sample"):
        clone(SEARCHES["MKFDACV"]).fit(X, labels)


def test_importance_tells_it_too():
    X, y = lonely_class()
    views = {"first": X[:, :1], "second": X[:, 1:]}
    with warns_of_rare_class():
        view_importance(MKLogistic(Linear()), views, y, n_resamples=0)


@pytest.mark.filterwarnings("error")
def test_given_folds_are_taken_as_they_are():
    # Of validation sets and splits that are given, users know what is tested.
    X, y = lonely_class()
    splits = [(np.arange(12), np.arange(12, 24))]
    assert clone(SEARCHES["MKFDACV"]).set_params(cv=splits).fit(X, y).best_score_ <= 1.0
