"""view_importance: by hand, its laws, and whatever may be passed."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.metrics import accuracy_score
from sklearn.model_selection import KFold, StratifiedKFold

from manykernels import (
    MKFDA,
    MKFDACV,
    MKSVC,
    MKSVCCV,
    MKSVR,
    MKSVRCV,
    Denoise,
    MKRidge,
    MKRidgeCV,
    Views,
    view_importance,
)
from manykernels.kernels import RBF, Linear
from tests.inspection.problems import (
    KERNEL,
    CountingSolver,
    stack_of,
    views_and_classes,
    views_and_numbers,
)

FDA = MKFDA(KERNEL, p=1, reg=1.0)
COLUMNS = ["fall", "fall_interval", "alone", "alone_interval", "weight", "gain", "score"]


def assert_same(found, expected, order=slice(None), columns=COLUMNS, **tolerance):
    """The same table, the views of `expected` in another order."""
    tolerance = {"rtol": 1e-6, "atol": 1e-6} | tolerance
    for name in columns:
        other = np.asarray(getattr(expected, name))
        other = other[order] if name not in ("gain", "score") else other
        np.testing.assert_allclose(getattr(found, name), other, err_msg=name, **tolerance)


@pytest.fixture(scope="module")
def classes():
    return views_and_classes()


@pytest.fixture(scope="module")
def result(classes):
    return view_importance(FDA, *classes, n_resamples=6)


# -- by hand ---------------------------------------------------------------------------------


def test_folds_are_what_they_are_by_hand(classes):
    views, y = classes
    stack, model = stack_of(views), MKSVC("precomputed", p=1.5)
    splits = list(StratifiedKFold(3).split(y, y))
    names = np.array(["no", "yes"])[y]
    found = view_importance(model, stack, names, cv=splits, n_resamples=0)

    def hits(kernels, **params):
        predictions = np.empty(len(y), dtype=names.dtype)
        for train, test in splits:
            part = stack.select(kernels)
            fitted = MKSVC("precomputed", **{"p": 1.5, **params})
            fitted.fit(part[np.ix_(train, train)], names[train])
            predictions[test] = fitted.predict(part[np.ix_(test, train)])
        return (predictions == names).astype(float)

    every = hits([0, 1, 2])
    assert found.score == every.mean()
    for j in range(3):
        assert found.fall[j] == pytest.approx(np.mean(every - hits(np.delete(range(3), j))))
        assert found.alone[j] == pytest.approx(hits([j]).mean())
    equal = hits([0, 1, 2], p=np.inf, C=3 ** (-1 / 1.5))
    assert found.plain_sum == equal.mean()
    assert found.gain == pytest.approx(np.mean(every - equal))
    weights = MKSVC("precomputed", p=1.5).fit(stack, names).weights_
    np.testing.assert_allclose(found.weight, weights / weights.sum())


def test_the_plain_sum_has_the_budget_of_the_weights(classes):
    """Kernels that all have the weight n^(−1/p) are a sum with another regularisation."""
    views, y = classes
    stack, p = stack_of(views), 1.5
    small = stack_of(views).select([0, 1, 2])
    matrices = {name: stack.kernel(name) * 3 ** (-1 / p) for name in stack.names}
    for kind, name, power in [(MKFDA, "reg", 1.0), (MKSVC, "C", -1.0)]:
        scaled = kind("precomputed", p=np.inf, normalize=None, **{name: 0.7}).fit(matrices, y)
        other = kind(
            "precomputed", p=np.inf, normalize=None, **{name: 0.7 * 3 ** (power / p)}
        ).fit(small, y)
        np.testing.assert_allclose(
            scaled.decision_function(matrices),
            other.decision_function(small),
            rtol=1e-4,
            atol=1e-4,
        )


def test_the_closed_form_is_close_to_models_without_the_samples(classes):
    """Probabilities are calibrated by two numbers, which changes log losses by about 2/n."""
    views = {name: classes[0][name] for name in ("strong", "noise")}
    folds = StratifiedKFold(10, shuffle=True, random_state=0)
    for scoring, tolerance in {"accuracy": 0.05, "neg_log_loss": 0.06}.items():
        options = {"scoring": scoring, "n_resamples": 0}
        closed = view_importance(FDA, views, classes[1], **options)
        held_out = view_importance(FDA, views, classes[1], cv=folds, **options)
        columns = ["score", "fall", "alone", "gain"]
        assert_same(closed, held_out, rtol=0, atol=tolerance, columns=columns)
        assert closed.method == "samples left out in closed form"
        assert held_out.method == "10 folds held out"


def test_numbers_are_predicted_in_folds():
    views, y = views_and_numbers()
    model = MKSVR(KERNEL, p=1, C=1.0)
    found = view_importance(model, views, y, n_resamples=4)
    assert found.scoring == "r2"
    assert found.fall_interval[0, 0] > 0 < found.fall_interval[1, 0]
    assert found.fall_interval[2, 0] < 0 < found.fall_interval[2, 1]
    absolute = view_importance(
        model, views, y, n_resamples=0, scoring="neg_mean_absolute_error", cv=3
    )
    assert np.all(absolute.alone < absolute.score)


# -- laws ------------------------------------------------------------------------------------


def test_permuting_the_views_permutes_the_table(classes, result):
    views, y = classes
    order = [2, 0, 1]
    other = {name: views[name] for name in np.array(list(views))[order]}
    found = view_importance(FDA, other, y, n_resamples=6)
    assert found.names == [result.names[j] for j in order]
    assert_same(found, result, order, atol=1e-4)
    np.testing.assert_allclose(
        found.resampled_weights, result.resampled_weights[:, order], atol=2e-3
    )


def test_neither_of_two_equal_views_is_needed_but_one_of_them_is(classes):
    views, y = classes
    views = {**views, "copy": 10 * views["strong"]}
    found = view_importance(FDA, views, y, scoring="neg_log_loss", n_resamples=0)
    np.testing.assert_allclose(found.fall[[0, 3]], 0.0, atol=1e-3)
    assert np.all(np.abs(found.fall_interval[[0, 3]]) < 0.05)
    assert found.alone[0] == pytest.approx(found.alone[3])
    assert found.alone[0] > found.alone[2] + 0.2
    pairs = {"pair": ["strong", "copy"], "noise": "noise"}
    pair = view_importance(FDA, views, y, views=pairs, scoring="neg_log_loss", n_resamples=0)
    assert pair.fall_interval[0, 0] > 0.1


def test_groups_of_samples_are_one_sample(classes):
    """Repeats of a group are neither held out alone nor divided by half-samples."""
    views, y = classes
    groups = np.repeat(np.arange(len(y)), 3)
    jitter = np.random.default_rng(0)
    tables = {
        name: np.repeat(view, 3, axis=0)
        + 1e-9 * jitter.standard_normal((3 * len(y), view.shape[1]))
        for name, view in views.items()
    }
    once = view_importance(FDA, views, y, n_resamples=4)
    # λ is compared with sums over samples, of which there are three times as many.
    three = clone(FDA).set_params(reg=3 * FDA.reg)
    found = view_importance(three, tables, np.repeat(y, 3), groups=groups, n_resamples=4)
    for name in ("score", "score_interval", "fall", "fall_interval", "alone", "resampled_weights"):
        np.testing.assert_allclose(getattr(found, name), getattr(once, name), atol=1e-6)
    alone = view_importance(three, tables, np.repeat(y, 3), n_resamples=0, cv=5)
    assert np.ptp(alone.score_interval) < 0.8 * np.ptp(found.score_interval)


def test_half_samples_of_a_class_of_two_groups(classes):
    """Half-samples may have one group of a class, since they are not judged."""
    views, y = classes
    y = y.astype(object)
    first = np.flatnonzero(y == y[0])
    y[first[:6]] = "rare"
    groups = np.arange(len(y))
    groups[first[:3]], groups[first[3:6]] = groups[first[0]], groups[first[3]]
    y = y.astype(str)
    found = view_importance(FDA, views, y, groups=groups, n_resamples=4)
    assert np.isfinite(found.weight_interval).all()


def test_weights_count_samples(classes):
    views, y = classes
    counts = np.random.default_rng(0).integers(0, 3, len(y))
    copies = {name: np.repeat(view, counts, axis=0) for name, view in views.items()}
    options = {"scoring": "neg_log_loss", "n_resamples": 0}
    weighted = view_importance(FDA, views, y, sample_weight=counts, **options)
    repeated = view_importance(FDA, copies, np.repeat(y, counts), **options)
    # Intervals know that a row was left out of as many rows as there are.
    columns = [name for name in COLUMNS if not name.endswith("interval")]
    assert_same(weighted, repeated, columns=columns, atol=1e-4)
    assert_same(weighted, repeated, atol=5e-3)


def test_rows_of_weight_zero_are_no_rows(classes):
    views, y = classes
    weight = (np.arange(len(y)) % 4 > 0).astype(float)
    part = {name: view[weight > 0] for name, view in views.items()}
    found = view_importance(FDA, views, y, sample_weight=weight, n_resamples=0)
    assert_same(found, view_importance(FDA, part, y[weight > 0], n_resamples=0), atol=1e-5)
    splits = list(KFold(3).split(y))
    found = view_importance(FDA, views, y, sample_weight=weight, cv=splits, n_resamples=2)
    assert found.method == "3 folds held out"
    assert np.isfinite(found.fall).all()


def test_names_of_classes_change_nothing(classes, result):
    views, y = classes
    found = view_importance(FDA, views, np.array(["left", "right"])[y], n_resamples=6)
    assert_same(found, result, rtol=0, atol=0)


def test_the_same_seed_gives_the_same_table(classes):
    model = MKSVC(KERNEL, p=1)
    first, second, other = (
        view_importance(model, *classes, cv=2, n_resamples=2, random_state=seed)
        for seed in (1, 1, 2)
    )
    assert_same(first, second, rtol=0, atol=0)
    np.testing.assert_array_equal(first.resampled_weights, second.resampled_weights)
    assert not np.array_equal(first.resampled_weights, other.resampled_weights)


def test_there_are_two_fits_per_view_and_two_of_all_views(classes, monkeypatch):
    monkeypatch.setattr(CountingSolver, "calls", 0)
    views, y = classes
    model = MKFDA(KERNEL, p=1, reg=1.0, solver=CountingSolver())
    view_importance(model, views, y, n_resamples=0)
    # The plain sum, which has a solver of its own, is not counted.
    assert CountingSolver.calls == 1 + 2 * len(views)
    view_importance(model, views, y, n_resamples=5)
    assert CountingSolver.calls == 2 * (1 + 2 * len(views)) + 5
    CountingSolver.calls = 0
    view_importance(model, views, y, cv=3, n_resamples=0)
    assert CountingSolver.calls == 1 + 3 * (1 + 2 * len(views))


# -- what may be passed ----------------------------------------------------------------------


def test_dicts_views_tables_and_matrices_give_the_same(classes, result):
    views, y = classes
    table = np.hstack(list(views.values()))
    kernels = {name: KERNEL.on([2 * j, 2 * j + 1]) for j, name in enumerate(views)}
    for model, X in [
        (FDA, Views(views)),
        (MKFDA(kernels, p=1, reg=1.0), table),
        (MKFDA("precomputed", p=1, reg=1.0), stack_of(views)),
        (
            MKFDA("precomputed", p=1, reg=1.0),
            {name: stack_of(views).kernel(name) for name in views},
        ),
    ]:
        found = view_importance(model, X, y, n_resamples=6)
        assert found.names == result.names
        assert_same(found, result)


def test_rows_of_frames_are_matched_by_label(classes, result):
    views, y = classes
    labels = [f"s{i}" for i in range(len(y))]
    frames = {name: pd.DataFrame(view, index=labels) for name, view in views.items()}
    targets = pd.Series(y, index=labels).sample(frac=1.0, random_state=0)
    with pytest.warns(UserWarning, match="rows of y have the labels of X in another order"):
        found = view_importance(FDA, frames, targets, n_resamples=6)
    assert_same(found, result)


def test_a_view_may_have_several_kernels_and_a_kernel_several_views(classes):
    views, y = classes
    kernels = {"strong": [RBF(), Linear()], "weak": RBF(), "noise": None}
    found = view_importance(MKFDA(kernels, p=1, reg=1.0), views, y, n_resamples=0)
    assert found.names == ["strong", "weak", "noise"]
    assert found.weight.sum() == pytest.approx(1.0)
    product = [RBF().of("strong") * RBF().of("weak"), RBF().of("weak"), RBF().of("noise")]
    found = view_importance(MKFDA(product, p=2, reg=1.0), views, y, n_resamples=0)
    # The strong view has no kernel of its own, and the product counts for both of its views.
    assert np.isnan(found.alone).tolist() == [True, False, False]
    assert found.weight[1] > found.weight[0]


def test_kernels_in_no_group_are_always_used(classes):
    views, y = classes
    found = view_importance(FDA, views, y, views={"n": ["noise"]}, n_resamples=0)
    assert found.names == ["n"]
    alone = view_importance(FDA, views, y, n_resamples=0)
    assert found.fall[0] == pytest.approx(alone.fall[2])
    assert found.alone[0] == pytest.approx(alone.alone[2])


def test_a_stack_may_say_which_view_a_kernel_is_of(classes, result):
    views, y = classes
    stack = stack_of({**views, "third": views["noise"] ** 3})
    stack = stack.with_views(["strong", "weak", "rest", "rest"])
    found = view_importance(MKFDA("precomputed", p=1, reg=1.0), stack, y, n_resamples=0)
    assert found.names == ["strong", "weak", "rest"]
    assert found.alone[0] == pytest.approx(result.alone[0])


def test_samples_that_lack_a_view_are_judged_by_models_of_others(classes):
    views, y = classes
    labels = np.arange(len(y))
    frames = {name: pd.DataFrame(view, index=labels) for name, view in views.items()}
    frames["weak"] = frames["weak"].iloc[:40]
    targets = pd.Series(y, index=labels)
    model = MKFDA(KERNEL, p=1, reg=1.0, missing="mean")
    for cv in (None, 4):
        found = view_importance(model, frames, targets, n_resamples=1, cv=cv)
        assert found.names == ["strong", "weak", "noise"]
        assert found.fall_interval[0, 0] > 0
    part = MKFDA(KERNEL, reg=1.0).fit(views["weak"][:40], y[:40])
    hits = part.classes_[part.left_out_log_proba_.argmax(axis=1)] == y[:40]
    closed = view_importance(model, frames, targets, n_resamples=0)
    assert closed.alone[1] == pytest.approx(hits.mean())


@pytest.mark.slow
def test_ridge_regression_leaves_out_in_closed_form():
    views, y = views_and_numbers()
    found = view_importance(MKRidge(KERNEL, p=1), views, y, n_resamples=2)
    assert found.method == "samples left out in closed form"
    folds = KFold(20, shuffle=True, random_state=0)
    held_out = view_importance(MKRidge(KERNEL, p=1), views, y, cv=folds, n_resamples=0)
    columns = ["score", "fall", "alone", "gain"]
    assert_same(found, held_out, atol=0.03, rtol=0.05, columns=columns)
    both = np.column_stack([y, 100 * y[::-1]])
    shared = view_importance(MKRidge(KERNEL, p=1), views, both, n_resamples=1)
    assert shared.score < found.score
    separate = MKRidge(KERNEL, p=1, multi_target="separate")
    of_each = view_importance(separate, views, np.column_stack([y, 100 * y]), n_resamples=1)
    assert_same(of_each, found, columns=["score", "fall", "alone", "weight"], atol=1e-4)


@pytest.mark.parametrize(
    ("model", "problem"),
    [
        (MKRidgeCV(KERNEL, ps=[1, 2], regs=[1.0, 10.0]), views_and_numbers),
        pytest.param(
            MKSVRCV(KERNEL, ps=[1, 2], Cs=[1.0, 10.0]), views_and_numbers, marks=pytest.mark.slow
        ),
        pytest.param(
            MKSVCCV(KERNEL, ps=[1, 2], Cs=[1.0, 10.0]), views_and_classes, marks=pytest.mark.slow
        ),
    ],
)
def test_every_search_is_taken(model, problem):
    views, y = problem()
    views = {name: views[name] for name in ("strong", "noise")}
    options = {"cv": 2, "n_resamples": 1}
    found = view_importance(model.set_params(cv=2), views, y, **options)
    assert found.fall_interval[0, 0] > 0
    assert found.names == ["strong", "noise"]


def test_more_classes_and_weights_for_each_of_them():
    rng = np.random.default_rng(4)
    y = np.repeat([0, 1, 2], 25)
    views = {"a": np.eye(3)[y] + 0.4 * rng.standard_normal((75, 3)), "b": rng.random((75, 2))}
    for model in [MKFDA(KERNEL, reg=1.0), MKSVC(KERNEL, multi_class="separate")]:
        found = view_importance(model, views, y, n_resamples=2)
        assert found.fall_interval[0, 0] > 0.3
        assert found.weight.sum() == pytest.approx(1.0)


@pytest.mark.slow
def test_a_search_chooses_the_norm_once_and_the_rest_again(classes):
    views, y = classes
    grid = {"ps": [1, 2], "regs": [0.1, 1.0, 10.0], "cv": 3}
    found = view_importance(MKFDACV(KERNEL, **grid), views, y, n_resamples=2)
    stack = stack_of(views)
    p = MKFDACV("precomputed", **grid).fit(stack, y).p_
    for j in range(3):
        model = MKFDACV("precomputed", **{**grid, "ps": [p]}).fit(stack.select([j]), y)
        predictions = model.classes_[model.left_out_log_proba_.argmax(axis=1)]
        assert found.alone[j] == pytest.approx(accuracy_score(y, predictions))
    held_out = view_importance(
        MKFDACV(KERNEL, **grid), views, y, cv=3, n_resamples=0, scoring="neg_log_loss"
    )
    assert held_out.fall_interval[0, 0] > 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "model",
    [
        MKFDA(KERNEL, reg=1.0, denoise=Denoise(0.9)),
        MKFDA(KERNEL, p=1, reg="joint"),
        MKFDA(KERNEL, reg=1.0, solver="coordinate"),
    ],
)
def test_folds_are_held_out_where_the_closed_form_has_seen_the_sample(classes, model):
    assert view_importance(model, *classes, n_resamples=1).method == "5 folds held out"


def test_nothing_is_learnt_at_the_largest_norm(classes):
    found = view_importance(MKFDA(KERNEL, p=np.inf, reg=1.0), *classes, n_resamples=2)
    assert found.gain == 0.0
    np.testing.assert_allclose(found.resampled_weights, 1 / 3)


def test_a_line_is_printed_for_every_model(classes, capsys):
    view_importance(FDA, *classes, n_resamples=1, verbose=True)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1 + 3 + 1 + 3 + 1
    assert lines[1].startswith("[view_importance] without 'strong'  accuracy 0.")


def test_an_interruption_loses_nothing(classes):
    calls = []

    def loss(y, predictions):
        calls.append(len(y))
        if len(calls) == 4:
            raise KeyboardInterrupt
        return (y != predictions).astype(float)

    with pytest.warns(RuntimeWarning, match="interrupted after 3 models"):
        found = view_importance(FDA, *classes, scoring=loss, n_resamples=2)
    assert np.isnan(found.fall).tolist() == [False, False, True]
    assert np.isnan(found.alone).all()
    assert np.isnan(found.gain)
    assert np.isnan(found.chosen).all()
    assert "–" in str(found)
    assert found.scoring == "loss"
