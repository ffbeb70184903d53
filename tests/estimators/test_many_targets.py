"""Many targets with weights of their own: MKRidgeCV with candidates that all targets share."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import r2_score
from sklearn.model_selection import GroupKFold, KFold, ShuffleSplit, TimeSeriesSplit

from manykernels import MKRidge, MKRidgeCV, persistence
from manykernels.kernels import RBF, Linear
from tests.estimators.registry import refused

WIDTH, N_VIEWS = 4, 3
RNG = np.random.default_rng(0)


def views_of(rng, n_rows, n_views=N_VIEWS, width=WIDTH):
    return {f"view {v}": rng.normal(size=(n_rows, width)) for v in range(n_views)}


def targets_of(views, n_targets, noise=1.0):
    """Target k is linear in view k mod 3."""
    rng = np.random.default_rng(1)
    tables = list(views.values())
    signal = [tables[k % 3] @ rng.normal(size=WIDTH) for k in range(n_targets)]
    signal = np.column_stack(signal)
    return signal + noise * rng.normal(size=signal.shape)


VIEWS = views_of(RNG, 180)
Y = targets_of(VIEWS, 24)
TRAIN = {name: table[:90] for name, table in VIEWS.items()}
NEW = {name: table[90:] for name, table in VIEWS.items()}
SEPARATE = {"multi_target": "separate"}
REGS = [0.01, 1.0, 100.0]


def test_many_targets_take_their_view_by_default():
    model = MKRidgeCV(Linear(), **SEPARATE).fit(TRAIN, Y[:90])
    assert model.solver_ == "candidates"
    assert model.weights_.shape == (24, 3)
    assert_array_equal(model.weights_.argmax(axis=1), np.arange(24) % 3)
    assert_allclose(model.weights_.sum(axis=1), 1.0)
    few = MKRidgeCV(Linear(), ps=[1], regs=[1.0], **SEPARATE).fit(TRAIN, Y[:90, :2])
    assert few.solver_ == "newton"
    learnt = MKRidgeCV(Linear(), ps=[1], regs=[1.0, 10.0], cv=3, **SEPARATE).fit(TRAIN, Y[:90])
    assert learnt.solver_ == "newton"
    assert learnt.certificate_.converged
    assert model.score(NEW, Y[90:]) > learnt.score(NEW, Y[90:]) - 0.01


def test_a_target_is_the_ridge_regression_with_its_weights():
    model = MKRidgeCV(Linear(), **SEPARATE).fit(TRAIN, Y[:90])
    for k in range(3):
        kernels = [(name, Linear().of(name)) for name in TRAIN]
        alone = MKRidge(kernels[k : k + 1], p=1, reg=model.reg_[k])
        if np.isclose(model.weights_[k, k], 1.0):
            alone.fit(TRAIN, Y[:90, k])
            assert_allclose(model.predict(NEW)[:, k], alone.predict(NEW), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(
    ("m", "n_targets"), [(250, 100), pytest.param(300, 1000, marks=pytest.mark.slow)]
)
def test_scores_on_views_of_noise_are_those_on_new_rows(m, n_targets):
    rng = np.random.default_rng(0)
    views = views_of(rng, m + 300, n_views=20, width=30)
    Y = rng.normal(size=(m + 300, n_targets))
    train = {name: table[:m] for name, table in views.items()}
    new = {name: table[m:] for name, table in views.items()}
    model = MKRidgeCV(Linear(), **SEPARATE).fit(train, Y[:m])
    outside = r2_score(Y[m:], model.predict(new), multioutput="raw_values").mean()
    assert abs(model.best_score_.mean() - outside) <= 0.03


def test_left_out_predictions_have_their_score():
    model = MKRidgeCV(Linear(), **SEPARATE).fit(TRAIN, Y[:90])
    expected = r2_score(Y[:90], model.left_out_predictions_, multioutput="raw_values")
    assert_allclose(model.left_out_score_, expected)
    folds = [np.flatnonzero(model.test_fold_ == k) for k in range(5)]
    scores = [
        r2_score(Y[fold], model.left_out_predictions_[fold], multioutput="raw_values")
        for fold in folds
    ]
    assert_allclose(model.best_score_, np.mean(scores, axis=0))


def test_units_of_targets_and_n_jobs_change_nothing():
    model = MKRidgeCV(Linear(), **SEPARATE).fit(TRAIN, Y[:90])
    moved = MKRidgeCV(Linear(), n_jobs=2, **SEPARATE).fit(TRAIN, 1e6 * Y[:90] - 1e7)
    assert_allclose(moved.weights_, model.weights_)
    assert_array_equal(moved.reg_, model.reg_)
    assert_allclose(moved.predict(NEW), 1e6 * model.predict(NEW) - 1e7, rtol=1e-6)


def test_constant_targets_are_predicted():
    targets = Y[:90].copy()
    targets[:, 3] = 7.0
    model = MKRidgeCV(Linear(), **SEPARATE).fit(TRAIN, targets)
    assert_allclose(model.predict(NEW)[:, 3], 7.0)
    assert np.isfinite(model.weights_).all()


def test_a_single_target_may_take_candidates():
    model = MKRidgeCV(Linear(), certify=False, **SEPARATE).fit(TRAIN, Y[:90, 0])
    several = MKRidgeCV(Linear(), certify=False, **SEPARATE).fit(TRAIN, Y[:90, :1])
    assert model.predict(NEW).shape == (90,)
    assert model.left_out_predictions_.shape == (90,)
    assert_allclose(several.predict(NEW)[:, 0], model.predict(NEW))
    assert_array_equal(several.weights_[0], model.weights_)


def test_weights_of_samples_are_repetitions():
    weight, groups = np.random.default_rng(3).integers(1, 3, 90), np.arange(90) // 2
    rows = np.repeat(np.arange(90), weight)
    folds = [np.isin(groups, part) for part in np.array_split(np.arange(45), 3)]
    cv = [(np.flatnonzero(~fold), np.flatnonzero(fold)) for fold in folds]
    repeated = [tuple(np.flatnonzero(np.isin(rows, part)) for part in split) for split in cv]
    kernels, params = RBF(0.1), {"regs": [0.1, 1.0, 10.0], **SEPARATE}
    model = MKRidgeCV(kernels, cv=cv, **params).fit(TRAIN, Y[:90], weight, groups)
    table = {name: values[rows] for name, values in TRAIN.items()}
    long = MKRidgeCV(kernels, cv=repeated, **params).fit(table, Y[rows], groups=groups[rows])
    assert_array_equal(long.reg_, model.reg_)
    assert_allclose(long.best_score_, model.best_score_, rtol=1e-6)
    assert_allclose(long.predict(NEW), model.predict(NEW), rtol=1e-6, atol=1e-8)


def test_groups_are_left_out_together():
    """Within a group rows are alike, so that leaving out single rows would tell nothing."""
    rng = np.random.default_rng(5)
    groups = np.repeat(np.arange(20), 4)
    centres = rng.normal(size=(20, 40))
    X = centres[groups] + 0.01 * rng.normal(size=(80, 40))
    Y = rng.normal(size=(20, 25))[groups]
    for cv in (None, GroupKFold(5)):
        model = MKRidgeCV({"a": Linear(), "b": RBF(0.01)}, cv=cv, regs=REGS, **SEPARATE)
        model.fit(X, Y, groups=groups)
        assert model.best_score_.mean() < 0.05
    alone = MKRidgeCV({"a": Linear(), "b": RBF(0.01)}, regs=REGS, **SEPARATE).fit(X, Y)
    assert alone.best_score_.mean() > 0.9


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"ps": [1]}, "ps"),
        ({"scoring": "r2"}, "scoring"),
        ({"multi_target": "shared"}, "one weight vector is learnt for all"),
        ({"cv": "closed-form"}, "number of folds"),
        ({"one_standard_error": True}, "one_standard_error"),
        ({"kernel_sets": {"one": ["*0*"], "all": ["*"]}}, "kernel_sets"),
        ({"approximation": "auto"}, "approximation"),
        ({"cv": ShuffleSplit(3, test_size=0.6, random_state=0)}, "tested twice"),
        ({"cv": TimeSeriesSplit(3)}, "all other rows"),
        ({"cv": KFold(90)}, "at least two rows"),
    ],
)
def test_what_does_not_go_with_candidates_is_refused(params, message):
    model = MKRidgeCV(Linear(), **{"certify": False, **SEPARATE, **params})
    with refused(message):
        model.fit(TRAIN, Y[:90])


def test_prediction_intervals_and_files_as_of_other_models(tmp_path):
    for y in (Y[:90], Y[:90, 0]):
        model = MKRidgeCV(Linear(), regs=REGS, certify=False, **SEPARATE).fit(TRAIN, y)
        intervals = model.predict_interval(NEW, coverage=0.8)
        truth = Y[90:] if y.ndim == 2 else Y[90:, 0]
        inside = (intervals[..., 0] <= truth) & (truth <= intervals[..., 1])
        assert 0.7 < inside.mean() < 0.9
        persistence.save(model, tmp_path / "model")
        assert_array_equal(persistence.load(tmp_path / "model").predict(NEW), model.predict(NEW))


def test_there_is_no_validation_curve():
    model = MKRidgeCV(Linear(), **SEPARATE).fit(TRAIN, Y[:90])
    with pytest.raises(AttributeError, match="certify=True"):
        model.validation_curve()


# -- contributions of views ------------------------------------------------------------------


@pytest.mark.parametrize("multi_target", ["shared", "separate"])
@pytest.mark.parametrize("n_targets", [None, 24])
def test_contributions_of_views_sum_to_the_prediction(multi_target, n_targets):
    y = Y[:, 0] if n_targets is None else Y
    kernels = {name: [Linear(), RBF(0.1)] for name in TRAIN}
    model = MKRidgeCV(kernels, regs=[0.1, 1.0], multi_target=multi_target).fit(TRAIN, y[:90])
    parts = model.predict_by_view(NEW)
    assert set(parts) <= set(TRAIN)
    assert_allclose(sum(parts.values()) + model.intercept_, model.predict(NEW), atol=1e-10)
    scores = model.score_by_view(NEW, y[90:])
    total = sum(scores.values())
    predicted = model.predict(NEW)
    centred = predicted - predicted.mean(axis=0) + y[90:].mean(axis=0)
    assert_allclose(
        total, r2_score(y[90:], centred, multioutput="raw_values").reshape(total.shape)
    )


def test_shares_belong_to_the_view_of_a_target():
    model = MKRidgeCV(Linear(), **SEPARATE).fit(TRAIN, Y[:90])
    scores = model.score_by_view(NEW, Y[90:], sample_weight=np.arange(90))
    table = np.array([scores[name] for name in TRAIN])
    assert_array_equal(table.argmax(axis=0), np.arange(24) % 3)


def test_kernels_of_one_table_contribute_by_name():
    X = np.hstack(list(VIEWS.values()))
    kernels = {"first": Linear().on(slice(0, 4)), "others": Linear().on(slice(4, 12))}
    model = MKRidge(kernels).fit(X[:90], Y[:90])
    parts = model.predict_by_view(X[90:])
    assert list(parts) == ["first", "others"]
    assert_allclose(sum(parts.values()) + model.intercept_, model.predict(X[90:]), atol=1e-10)
    with pytest.raises(ValueError, match="shape"):
        model.score_by_view(X[90:], Y[90:, 0])
