"""What every estimator looks at to predict, what it keeps for it, and in how much memory."""

import joblib
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from manykernels import KernelUnion
from tests.estimators.registry import (
    ARRAY,
    BLOCK_ENTRIES,
    COMPARED,
    N_TEST,
    N_TRAIN,
    STACKED,
    TABLE,
    TEST_STACK,
    X_TEST,
    Form,
    Noted,
    Nothing,
    X,
    Y,
    answers,
    every_form,
    every_variant,
    refused,
    those,
)
from tests.problems import slow

# -- blocks of rows --------------------------------------------------------------------------


@those(lambda entry: not entry.localized)
@pytest.mark.parametrize("normalize", ["multiplicative", *slow("spherical")])
def test_prediction_in_blocks_of_rows(entry, normalize, monkeypatch):
    on_table, on_stack = (entry.fit(form, normalize=normalize) for form in (TABLE, STACKED))
    expected = entry.scores(on_table, X_TEST)
    evaluate = KernelUnion.__call__
    shapes = []

    def recording(self, *args, **kwargs):
        stack = evaluate(self, *args, **kwargs)
        shapes.append(stack.shape)
        return stack

    monkeypatch.setattr(KernelUnion, "__call__", recording)
    for entries in (1, 3 * N_TRAIN * 4, 3 * N_TRAIN * N_TEST):
        monkeypatch.setattr(BLOCK_ENTRIES, entries)
        shapes.clear()
        assert_allclose(entry.scores(on_table, X_TEST), expected, rtol=1e-10)
        assert sum(rows for rows, _, _ in shapes) == N_TEST
        assert max(np.prod(shape) for shape in shapes) <= max(entries, 3 * N_TRAIN)
        assert_allclose(entry.scores(on_stack, TEST_STACK), expected, rtol=1e-7, atol=1e-8)


# -- kernels and samples that count ----------------------------------------------------------


@pytest.mark.filterwarnings("ignore:Nothing can be learnt from kernels")
@pytest.mark.filterwarnings("ignore:.*the most that rounding errors allow")
@those(
    lambda entry: (
        entry.sparse
        and entry.target not in ("none", "labels")
        and entry.options.get("reg") != "joint"
        and not entry.finds_regions
    )
)
@pytest.mark.parametrize("useless", [Nothing(50.0), *slow(Noted(50.0))], ids=["nothing", "noise"])
def test_only_support_vectors_and_kernels_with_weight_are_compared(entry, useless):
    kernels = [("useful", Noted(0.3).on([0, 1, 2])), ("useless", useless.on([3]))]
    easy = Form("easy", kernels, X + 5.0 * np.eye(3, 5)[Y], X_TEST)
    model = entry.fit(easy, p=1, **({"reg": 10.0} if entry.name == "MKFDA" else {}))
    assert not model.weights_[..., 1].any()
    n_columns = len(model.support_) if entry.has_support else N_TRAIN
    assert n_columns < N_TRAIN or not entry.has_support
    for method in ("predict", "predict_proba", "decision_function", "transform"):
        if hasattr(model, method):
            COMPARED.clear()
            assert len(getattr(model, method)(X_TEST)) == N_TEST
            assert [(0.3, N_TEST, n_columns)] == COMPARED


@every_variant
def test_a_test_block_is_checked_where_it_is_not_looked_at_too(entry):
    model = entry.fit(ARRAY)
    used = model.support_ if entry.has_support else np.arange(N_TRAIN)
    others = np.setdiff1d(np.arange(N_TRAIN), used)
    for column in [*others[:1], used[0]]:
        block = ARRAY.new.copy()
        block[2, column, 1] = np.nan
        message = rf"Kernel 'kernel1' has a value that is not finite .*row 2, column {column}"
        with refused(message):
            model.predict(block)


@every_variant
@every_form
def test_predicting_leaves_the_estimator_as_it_was(entry, form):
    model = entry.fit(form)
    before = joblib.hash(vars(model))
    first = answers(model, form.new)
    if entry.localized:
        model.active_kernels(form.new)
        model.evaluations(form.new)
        model.region_summary()
    assert joblib.hash(vars(model)) == before
    for found, expected in zip(answers(model, form.new), first, strict=True):
        assert_array_equal(found, expected)


# -- what is kept ----------------------------------------------------------------------------


def arrays_of(value, seen):
    """All arrays that can be reached from a value."""
    if id(value) in seen:
        return
    seen[id(value)] = value
    if isinstance(value, np.ndarray):
        yield value
        yield from arrays_of(value.base, seen)
    elif isinstance(value, dict):
        for item in value.values():
            yield from arrays_of(item, seen)
    elif isinstance(value, list | tuple | set):
        for item in value:
            yield from arrays_of(item, seen)
    elif hasattr(value, "__dict__") and not isinstance(value, type):
        yield from arrays_of(vars(value), seen)
        for cell in getattr(value, "__closure__", None) or ():
            yield from arrays_of(cell.cell_contents, seen)


@every_variant
@every_form
@pytest.mark.parametrize("normalize", ["multiplicative", *slow("spherical", "trace", None)])
def test_a_fitted_estimator_holds_no_kernel_matrix(entry, form, normalize):
    model = entry.fit(form, normalize=normalize)
    if form is TABLE:
        model.predict(form.new)
    fitted = {name: value for name, value in vars(model).items() if name != "kernels"}
    sizes = [array.size for array in arrays_of(fitted, {})]
    assert len(sizes) > 5
    assert max(sizes) < N_TRAIN * N_TRAIN / 2


@those(lambda entry: entry.has_support and not (entry.localized or entry.regional))
@pytest.mark.parametrize("normalize", ["multiplicative", "spherical", *slow("trace", None)])
def test_scores_are_those_of_all_columns_by_hand(entry, normalize):
    """The sum over support vectors, normalised as if with all training samples."""
    kernels, blocks = (np.moveaxis(array, -1, 0) for array in (ARRAY.data, ARRAY.new))
    traces = np.trace(kernels, axis1=1, axis2=2) - kernels.sum(axis=(1, 2)) / N_TRAIN
    if normalize == "spherical":
        diagonals = STACKED.data.row_diag[:, None, :] * TEST_STACK.row_diag[:, :, None]
        blocks = blocks / np.sqrt(diagonals)
    elif normalize is not None:
        blocks = blocks / traces[:, None, None]
        blocks = blocks * (N_TRAIN if normalize == "multiplicative" else 1)
    for form in (TABLE, STACKED):
        model = entry.fit(form, normalize=normalize)
        # Of some estimators each kernel has coefficients of its own.
        coefficients = np.broadcast_to(model.dual_coef_, (3, *model.dual_coef_.shape[-2:]))
        weights = np.broadcast_to(model.weights_, (coefficients.shape[1], 3))
        expected = model.intercept_ + np.einsum(
            "kj,jri,jki->rk", weights, blocks[:, :, model.support_], coefficients
        )
        if hasattr(model, "calibration_"):
            # Decisions are moved by offsets, of each of several labels.
            each = model.calibration_
            each = each if isinstance(each, list | tuple) else [each]
            expected = expected + np.concatenate([calibration.offsets for calibration in each])
        found = entry.scores(model, form.new).reshape(N_TEST, -1)
        assert_allclose(found, expected, rtol=1e-8, atol=1e-10)
