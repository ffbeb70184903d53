"""Samples that lack views, in every estimator: the same from views, tables and matrices."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV, cross_val_score

import manykernels
from manykernels import (
    MKFDA,
    MKFDACV,
    MKGLM,
    MKSVC,
    MKSVCCV,
    MKSVR,
    MKSVRCV,
    KernelStack,
    LocalizedFDA,
    LocalizedOneClassSVM,
    LocalizedSVC,
    LocalizedSVR,
    MKLogistic,
    MKLogisticCV,
    MKOneClassSVM,
    MKRidge,
    MKRidgeCV,
    Views,
)
from manykernels.baselines import KimFDA
from manykernels.kernels import RBF, Linear, Presence
from tests.estimators.registry import made
from tests.problems import slow

NAMES = ["sound", "text", "image"]
N, NEW = 45, 12
WIDTH = 3
GLOBAL = {
    "MKFDA": MKFDA(),
    "MKFDACV": MKFDACV(ps=[1, 2], regs=[0.1, 1.0], cv=3),
    "MKSVC": MKSVC(),
    "MKRidge": MKRidge(),
    "MKRidgeCV": MKRidgeCV(ps=[1, 2], regs=[0.1, 1.0], cv=3),
    "MKSVCCV": MKSVCCV(ps=[1, 2], Cs=[0.1, 1.0], cv=3),
    "MKSVR": MKSVR(),
    "MKSVRCV": MKSVRCV(ps=[1, 2], Cs=[0.1, 1.0], cv=3),
    "MKLogistic": MKLogistic(),
    "MKLogisticCV": MKLogisticCV(ps=[1, 2], regs=[0.1, 1.0], cv=3),
    "MKGLM": MKGLM(),
    "MKOneClassSVM": MKOneClassSVM(nu=0.3),
}
LOCALIZED = {
    "LocalizedSVC": LocalizedSVC(),
    "LocalizedFDA": LocalizedFDA(),
    "LocalizedSVR": LocalizedSVR(),
    "LocalizedOneClassSVM": LocalizedOneClassSVM(nu=0.3),
}
every = pytest.mark.parametrize(
    "model",
    [
        pytest.param(model, marks=[pytest.mark.slow] * hasattr(model, "cv"))
        for model in GLOBAL.values()
    ],
    ids=GLOBAL,
)
both = pytest.mark.parametrize("missing", ["mean", *slow("conditional")])
ignore_convergence = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def samples(n=N, seed=0, share=0.25, whole=()):
    """Tables of three views of common classes, with NaN where a sample lacks a view."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    centres = np.random.default_rng(7).normal(size=(len(NAMES), 3, WIDTH))
    tables = {
        name: centre[y] + 0.8 * rng.normal(size=(n, WIDTH))
        for name, centre in zip(NAMES, centres, strict=True)
    }
    present = rng.random((n, len(NAMES))) > share
    present[np.arange(n), rng.integers(len(NAMES), size=n)] = True
    for j, name in enumerate(NAMES):
        if name not in whole:
            tables[name][~present[:, j]] = np.nan
    return tables, y


def joined(tables):
    """One table, and a kernel for the columns of every view."""
    kernels = {name: RBF().on(slice(j * WIDTH, (j + 1) * WIDTH)) for j, name in enumerate(NAMES)}
    return np.hstack([tables[name] for name in NAMES]), kernels


def matrices(model, tables, new):
    """Precomputed kernels as a fitted model computes them."""
    old, new = Views(tables), Views(new)
    return model.union_(old), model.union_(new, old)


def answers(model, X):
    return model.decision_function(X) if hasattr(model, "decision_function") else model.predict(X)


@both
@every
def test_views_tables_and_matrices_give_the_same(model, missing):
    tables, y = samples()
    new, _ = samples(NEW, seed=1)
    model = clone(model).set_params(missing=missing)
    by_views = clone(model).set_params(kernels=RBF()).fit(tables, y)
    expected = answers(by_views, new)
    assert np.isfinite(expected).all()
    X, kernels = joined(tables)
    by_table = clone(model).set_params(kernels=kernels).fit(X, y)
    assert_allclose(answers(by_table, joined(new)[0]), expected, rtol=1e-7, atol=1e-9)
    stack, block = matrices(by_views, tables, new)
    by_stack = clone(model).set_params(kernels="precomputed").fit(stack, y)
    assert_allclose(answers(by_stack, block), expected, rtol=1e-7, atol=1e-9)
    by_arrays = clone(model).set_params(kernels="precomputed").fit(np.asarray(stack), y)
    assert_allclose(answers(by_arrays, np.asarray(block)), expected, rtol=1e-7, atol=1e-9)


@both
@every
def test_nothing_changes_if_nothing_is_missing(model, missing):
    tables, y = samples(share=0.0)
    plain = clone(model).set_params(kernels=RBF()).fit(tables, y)
    other = clone(plain).set_params(missing=missing).fit(tables, y)
    new, _ = samples(NEW, seed=1, share=0.0)
    assert_allclose(answers(other, new), answers(plain, new), rtol=1e-9, atol=1e-12)
    # and new samples may lack what no training sample lacks
    del new["text"]
    assert np.isfinite(answers(other, new)).all()
    with pytest.raises(ValueError, match=r"no view 'text'.*missing=\"mean\""):
        plain.predict(new)


@both
@every
def test_new_samples_are_answered_one_by_one(model, missing):
    tables, y = samples()
    new = Views(samples(NEW, seed=1)[0])
    fitted = clone(model).set_params(missing=missing, kernels=RBF()).fit(tables, y)
    whole = answers(fitted, new)
    parts = [answers(fitted, new[[row]]) for row in range(NEW)]
    assert_allclose(np.concatenate(parts), whole, rtol=1e-8, atol=1e-10)


@both
@pytest.mark.parametrize("normalize", ["spherical", *slow("trace", None)])
def test_normalisations_follow_the_completion(normalize, missing):
    tables, y = samples()
    new = samples(NEW, seed=1)[0]
    model = MKFDA(RBF(), missing=missing, normalize=normalize).fit(tables, y)
    stack, block = matrices(model, tables, new)
    again = MKFDA("precomputed", missing=missing, normalize=normalize).fit(stack, y)
    assert_allclose(again.decision_function(block), model.decision_function(new), rtol=1e-7)


@both
@pytest.mark.parametrize("name", ["MKFDA", *slow("MKSVC")])
def test_a_sample_of_weight_two_counts_as_two(name, missing):
    tables, y = samples()
    new = samples(NEW, seed=1)[0]
    weights = np.ones(N)
    weights[::3] = 2.0
    rows = np.repeat(np.arange(N), weights.astype(int))
    # Widths of kernels follow weights, too: given here, as both would find them up to rounding.
    model = clone(GLOBAL[name]).set_params(kernels=RBF(0.5), missing=missing, tol=1e-9)
    weighted = clone(model).fit(tables, y, weights)
    repeated = clone(model).fit({v: t[rows] for v, t in tables.items()}, y[rows])
    expected = repeated.decision_function(new)
    assert_allclose(weighted.decision_function(new), expected, rtol=1e-4, atol=1e-4)


@both
def test_rows_of_weight_zero_are_no_rows(missing):
    tables, y = samples()
    new = samples(NEW, seed=1)[0]
    weights = (np.arange(N) % 4 > 0).astype(float)
    kept = weights > 0
    model = MKSVC(RBF(), missing=missing)
    stack, block = matrices(clone(model).fit(tables, y), tables, new)
    model.set_params(kernels="precomputed")
    left = clone(model).fit(stack, y, weights).decision_function(block)
    right = clone(model).fit(stack[np.ix_(kept, kept)], y[kept])
    assert_allclose(left, right.decision_function(block[:, kept]), rtol=1e-7, atol=1e-9)


@both
def test_searches_and_cross_validation(missing):
    tables, y = samples()
    views = Views(tables)
    scores = cross_val_score(MKFDA(RBF(), missing=missing), views, y, cv=3)
    assert scores.mean() > 0.6
    search = GridSearchCV(MKFDA(RBF()), {"missing": ["mean", "conditional"]}, cv=3)
    assert search.fit(views, y).best_score_ > 0.6
    model = MKFDA(RBF()).set_params(missing=missing)
    stack, _ = matrices(model.fit(tables, y), tables, tables)
    scores = cross_val_score(MKFDA("precomputed", missing=missing), stack, y, cv=3)
    assert scores.mean() > 0.6


@both
@pytest.mark.parametrize("cv", [None, *slow(3, "closed-form")])
def test_folds_complete_their_own_training_part(cv, missing):
    tables, y = samples()
    model = MKFDACV(RBF(), ps=[1, 2], regs=[0.1, 1.0], cv=cv, missing=missing).fit(tables, y)
    assert 0.6 < model.best_score_ <= 1.0
    validation = samples(NEW, seed=1)
    model.set_params(cv=validation).fit(tables, y)
    assert model.n_splits_ == 1


@both
def test_several_labels(missing):
    tables, y = samples()
    several = np.column_stack([y == 0, y == 2]).astype(int)
    model = MKFDACV(RBF(), ps=[2], regs=[0.1, 1.0], cv=3, missing=missing).fit(tables, several)
    new, classes = samples(NEW, seed=1)
    assert np.mean(model.predict(new) == np.column_stack([classes == 0, classes == 2])) > 0.7


@both
def test_two_classes_of_a_baseline(missing):
    tables, y = samples()
    model = KimFDA(RBF(), reg=0.1, missing=missing).fit(tables, y == 0)
    assert np.isfinite(model.decision_function(samples(NEW, seed=1)[0])).all()


@pytest.mark.slow
@ignore_convergence
@both
@pytest.mark.parametrize("model", LOCALIZED.values(), ids=LOCALIZED)
def test_gates_look_at_a_view_that_all_samples_have(model, missing):
    tables, y = samples(whole=["text"])
    new = samples(NEW, seed=1, whole=["text"])[0]
    model = clone(model).set_params(kernels=RBF(), missing=missing, gating__features="text")
    by_views = clone(model).fit(tables, y)
    expected = answers(by_views, new)
    assert np.isfinite(expected).all()
    X, kernels = joined(tables)
    by_table = clone(model).set_params(kernels=kernels, gating__features=slice(WIDTH, 2 * WIDTH))
    assert_allclose(answers(by_table.fit(X, y), joined(new)[0]), expected, rtol=1e-6, atol=1e-8)
    plain = {v: np.nan_to_num(t) for v, t in tables.items()}
    complete = clone(model).set_params(missing="error").fit(plain, y)
    again = clone(model).fit(plain, y)
    assert_allclose(answers(again, plain), answers(complete, plain), rtol=1e-9, atol=1e-12)


@pytest.mark.slow
@both
@pytest.mark.parametrize("model", LOCALIZED.values(), ids=LOCALIZED)
def test_gates_look_at_all_kernels_by_default_whatever_samples_lack(model, missing):
    tables, y = samples()
    new = samples(NEW, seed=1)[0]
    model = clone(model).set_params(kernels=RBF(), missing=missing, gating__features=None)
    if "early_stopping" in model.get_params():
        model.set_params(early_stopping=3)
    model.fit(tables, y)
    assert np.isfinite(answers(model, new)).all()
    assert np.isfinite(model.gate(new)).all()


def test_gates_cannot_look_at_what_samples_lack():
    tables, y = samples()
    with pytest.raises(ValueError, match="gate looks at view 'sound', which some samples lack"):
        made(LocalizedSVC, RBF(), missing="mean", features=slice(None)).fit(tables, y)
    X, kernels = joined(tables)
    with pytest.raises(ValueError, match=r"features of the gate: .* not finite"):
        made(LocalizedSVC, kernels, missing="mean", features=slice(None)).fit(X, y)
    stack, _ = matrices(MKFDA(RBF(), missing="mean").fit(tables, y), tables, tables)
    model = made(LocalizedSVC, "precomputed", missing="mean", features="sound")
    with pytest.raises(ValueError, match="gate looks at kernel 'sound', which some samples lack"):
        model.fit(stack, y)


# -- what is learnt ------------------------------------------------------------------------


def test_kernels_learn_their_width_from_the_rows_that_have_the_view():
    tables, y = samples()
    X, kernels = joined(tables)
    model = MKFDA(kernels, missing="mean").fit(X, y)
    has = ~np.isnan(tables["sound"][:, 0])
    expected = RBF().fit(tables["sound"][has])
    assert model.union_.kernels_[0][1].kernel_.gamma_ == pytest.approx(expected.gamma_)


def test_columns_are_views():
    """Two kernels of the same columns are lacking together, also where none is in training."""
    tables, y = samples(share=0.0)
    X, kernels = joined(tables)
    kernels["wide"] = Linear().on([0, 1, 2])
    model = MKFDA(kernels, missing="conditional").fit(X, y)
    completion = model._predictor.transform.steps[0]
    assert_array_equal(completion.views_, [0, 1, 2, 0])


def test_preprocessing_sees_only_rows_that_are_there():
    tables, y = samples()
    X, kernels = joined(tables)
    X[0, 0] = np.nan if np.isfinite(X[0, 1]) else X[0, 0]
    kernels["sound"] = kernels["sound"].after(SimpleImputer())
    new = joined(samples(NEW, seed=1)[0])[0]
    assert np.isfinite(MKFDA(kernels, missing="mean").fit(X, y).decision_function(new)).all()


def test_data_frames_have_columns_by_name():
    tables, y = samples()
    frame = pd.concat({name: pd.DataFrame(table) for name, table in tables.items()}, axis=1)
    frame.columns = [f"{name}{j}" for name, j in frame.columns]
    kernels = {name: RBF().on([f"{name}{j}" for j in range(WIDTH)]) for name in NAMES}
    by_frame = MKFDA(kernels, missing="conditional").fit(frame, y)
    X, by_number = joined(tables)
    expected = MKFDA(by_number, missing="conditional").fit(X, y).decision_function(X)
    assert_allclose(by_frame.decision_function(frame), expected, rtol=1e-9)
    with pytest.raises(ValueError, match=r"Kernel '\w+': all its columns .* missing=\"mean\""):
        MKFDA(kernels).fit(frame, y)


# -- the pattern as a kernel ---------------------------------------------------------------


def test_the_pattern_of_absence_may_tell_the_class():
    tables, _ = samples(share=0.0)
    y = np.arange(N) % 2
    rng = np.random.default_rng(0)
    noise = {name: rng.normal(size=table.shape) for name, table in tables.items()}
    noise["text"][y == 1] = np.nan
    without = MKFDA(RBF(), missing="mean", p=2).fit(noise, y)
    kernels = {**dict.fromkeys(NAMES, RBF()), "pattern": Presence()}
    model = MKFDA(kernels, missing="mean", p=2).fit(noise, y)
    assert model.kernel_names_ == [*NAMES, "pattern"]
    assert model.score(noise, y) == 1.0
    assert model.weights_[3] == model.weights_.max()
    X, by_columns = joined(noise)
    table = MKFDA({**by_columns, "pattern": Presence()}, missing="mean", p=2).fit(X, y)
    assert_allclose(table.weights_, model.weights_, rtol=1e-5)
    assert without.kernel_names_ == NAMES


def test_presence_counts_what_both_have():
    X = np.array([[1.0, np.nan, 2.0], [np.nan, np.nan, 1.0], [3.0, 4.0, 5.0]])
    kernel = Presence().fit(X)
    expected = np.array([[2, 1, 2], [1, 1, 1], [2, 1, 3]]) / 3
    assert_allclose(kernel(X), expected)
    assert_allclose(kernel(X, X[:1]), expected[:, :1])
    assert_allclose(kernel.diag(X), np.diag(expected))
    assert_allclose(Presence().on([0, 1]).fit(X)(X)[0], [0.5, 0.0, 0.5])
    views = {"a": X[:, :1], "b": X[:, 1:2], "c": X[:, 2:]}
    assert_allclose(Presence().fit(views)(views), expected)


# -- bad input -----------------------------------------------------------------------------


@every
def test_lacking_views_are_refused_unless_asked(model):
    tables, y = samples()
    with pytest.raises(ValueError, match=r"view 'sound' is missing for \d+ of 45 .*\"mean\""):
        clone(model).set_params(kernels=RBF()).fit(tables, y)
    X, kernels = joined(tables)
    with pytest.raises(ValueError, match=r"Kernel 'sound': all its .* of 45 .*missing=\"mean\""):
        clone(model).set_params(kernels=kernels).fit(X, y)
    stack, _ = matrices(MKFDA(RBF(), missing="mean").fit(tables, y), tables, tables)
    for given in (stack, np.asarray(stack)):
        with pytest.raises(ValueError, match=r"no values .* of 45 samples, rows .*\"mean\""):
            clone(model).set_params(kernels="precomputed").fit(given, y)


@both
def test_samples_without_any_view_are_refused(missing):
    tables, y = samples()
    new = {name: table[:4].copy() for name, table in samples(share=0.0)[0].items()}
    for table in new.values():
        table[2] = np.nan
    X, kernels = joined(tables)
    message = r"1 of 4 samples have none of the .*: rows 2"
    with pytest.raises(ValueError, match=message):
        MKFDA(RBF(), missing=missing).fit(tables, y).predict(new)
    with pytest.raises(ValueError, match=message):
        MKFDA(kernels, missing=missing).fit(X, y).predict(joined(new)[0])
    model = MKFDA(RBF(), missing=missing).fit(tables, y)
    stack, block = matrices(model, tables, {name: table[:4] for name, table in tables.items()})
    K = np.asarray(block).copy()
    K[2] = np.nan
    with pytest.raises(ValueError, match=message):
        MKFDA("precomputed", missing=missing).fit(stack, y).predict(K)
    for table in tables.values():
        table[7] = np.nan
    with pytest.raises(ValueError, match=r"1 of 45 samples have none of the .*: rows 7"):
        MKFDA(RBF(), missing=missing).fit(tables, y)
    with pytest.raises(ValueError, match=r"1 of 45 samples have none of the .*: rows 7"):
        MKFDA(kernels, missing=missing).fit(joined(tables)[0], y)


def test_single_missing_values_are_not_missing_views():
    tables, y = samples(share=0.0)
    X, kernels = joined(tables)
    X[4, 1] = np.nan
    with pytest.raises(ValueError, match=r"kernel 'sound'.*NaN.*SimpleImputer"):
        MKFDA(kernels, missing="mean").fit(X, y)
    fitted = MKFDA(kernels, missing="mean").fit(joined(tables)[0], y)
    with pytest.raises(ValueError, match=r"kernel 'sound'.*NaN.*SimpleImputer"):
        fitted.predict(X)


@pytest.mark.parametrize("container", [np.asarray, *slow(pd.DataFrame)])
def test_kernels_fill_in_single_values(container):
    """In arrays as in data frames; columns that no kernel fills in are checked as ever."""
    tables, y = samples(share=0.0)
    broken = tables["sound"].copy()
    broken[4, 1] = np.nan
    filled = SimpleImputer().fit_transform(broken)
    kernels = [("all", RBF(gamma=0.1).after(SimpleImputer())), ("first", Linear().on([0]))]
    model = MKFDA(kernels).fit(container(broken), y)
    same = MKFDA([("all", RBF(gamma=0.1)), kernels[1]]).fit(filled, y)
    assert_allclose(model.weights_, same.weights_, rtol=1e-9)
    new = container(broken)
    expected = same.decision_function(filled)
    assert_allclose(model.decision_function(new), expected, rtol=1e-9, atol=1e-9)
    for other in (Linear(), Linear().on([1, 2])):
        with pytest.raises(ValueError, match=r"kernel 'first'.*missing value \(NaN\) at row 4"):
            MKFDA([kernels[0], ("first", other)]).fit(container(broken), y)


def test_stray_values_of_matrices_are_named():
    tables, y = samples(share=0.0)
    stack, _ = matrices(MKFDA(RBF()).fit(tables, y), tables, tables)
    K = np.asarray(stack).copy()
    K[3, 5, 1] = K[5, 3, 1] = np.nan
    with pytest.raises(ValueError, match=r"'kernel1' .*not finite \(NaN\) at row 3, column 5"):
        MKFDA("precomputed", missing="mean").fit(K, y)
    fitted = MKFDA("precomputed", missing="mean").fit(stack, y)
    with pytest.raises(ValueError, match=r"not finite \(NaN\) at row 3, column 5"):
        fitted.predict(KernelStack.from_arrays(np.moveaxis(K, -1, 0), NAMES, gram=False))


@pytest.mark.parametrize("solver", ["coordinate"])
def test_solvers_by_columns_are_refused(solver):
    tables, y = samples()
    X, kernels = joined(tables)
    with pytest.raises(ValueError, match="computed by columns: use another solver"):
        MKFDA(kernels, missing="mean", solver=solver).fit(X, y)


def test_every_estimator_has_the_parameter():
    for name in manykernels.__all__:
        kind = getattr(manykernels, name)
        if hasattr(kind, "fit") and hasattr(kind, "_keep"):
            assert "missing" in kind().get_params(), name
