"""What every estimator refuses of X, and that each refusal says what is wrong and where."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.exceptions import NotFittedError

from manykernels import KernelStack
from manykernels.kernels import RBF, Linear
from manykernels.utils import numerics
from tests.estimators.few_samples import (
    BLOCK,
    FRAME,
    GRAM,
    N_ROWS,
    X,
    Y,
    layers,
    on_kernels,
    on_table,
)
from tests.estimators.registry import METHODS, changed, every_estimator, refused

# -- values ----------------------------------------------------------------------------------

NOT_FINITE = [(np.nan, "NaN"), (np.inf, "inf"), (-np.inf, "inf")]
either_value = pytest.mark.parametrize(("value", "shown"), NOT_FINITE)


@every_estimator
@either_value
def test_table_with_values_that_are_not_finite(entry, value, shown):
    broken = changed(X, (2, 1), value)
    with refused(rf"value \({shown}\) at row 2"):
        on_table(entry, broken)
    model = on_table(entry)
    with refused(rf"value \({shown}\) at row 2"):
        model.predict(broken)


@every_estimator
@either_value
@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_dataframe_with_values_that_are_not_finite(entry, value, shown, frame):
    columns = frame(dict(zip("abc", changed(X, (2, 1), value).T, strict=True)))
    kernels = [("clean", RBF().on(["a"])), ("broken", RBF().on(["b", "c"]))]
    with refused(rf"kernel 'broken': RBF: X has .* value \({shown}\) at row 2, column 'b'"):
        on_table(entry, columns, kernels)
    if entry.localized:
        where = rf"features of the gate: .*not finite \(-?{shown}\) at row 2, column 'b'"
        with refused(where):
            on_table(entry, columns, kernels[:1], features=slice(None))


@every_estimator
def test_a_column_that_is_not_compared_may_hold_anything(entry):
    frame = FRAME.assign(word="w", broken=np.nan)
    named, numbered = ([("clean", RBF().on(columns))] for columns in (["a", "b"], [0, 1]))
    model = entry.make(named).fit(frame, entry.targets(Y))
    expected = entry.make(numbered).fit(X, entry.targets(Y))
    np.testing.assert_array_equal(model.predict(frame), expected.predict(X))


@every_estimator
@either_value
def test_kernel_with_values_that_are_not_finite(entry, value, shown):
    broken = changed(changed(GRAM, (3, 4), value), (4, 3), value)
    where = rf"has a value that is not finite \(-?{shown}\) at row 3, column 4"
    stack = KernelStack(np.stack([GRAM, broken]), ["shape", "texture"], gram=True)
    for name, data in [("kernel0", broken), ("kernel1", layers(GRAM, broken)), ("texture", stack)]:
        with refused(f"Kernel '{name}' {where}"):
            on_kernels(entry, data)


@every_estimator
@either_value
def test_test_block_with_values_that_are_not_finite(entry, value, shown):
    where = rf"has a value that is not finite \(-?{shown}\) at row 2, column 7"
    broken = changed(BLOCK, (2, 7), value)
    single, several = (on_kernels(entry, data) for data in (GRAM + 1, layers(GRAM, GRAM + 1)))
    with refused(f"Kernel 'kernel0' {where}"):
        single.predict(broken)
    with refused(f"Kernel 'kernel1' {where}"):
        several.predict(layers(BLOCK, broken))


def matrix_array_and_stack(matrix):
    """Every way to pass kernels, and the number of the last one, which is `matrix`."""
    stack = KernelStack(np.stack([GRAM, matrix]), ["kernel0", "kernel1"], gram=True)
    samples = [f"s{row}" for row in range(len(matrix))]
    frame = pd.DataFrame(matrix, index=samples, columns=samples)
    return [
        (0, matrix),
        (0, frame),
        (1, layers(GRAM, matrix)),
        (1, stack),
        (1, [GRAM, matrix]),
        (1, {"kernel0": GRAM, "kernel1": matrix}),
        (0, {"kernel0": frame}),
    ]


@every_estimator
def test_asymmetric_kernel(entry):
    broken = changed(GRAM, (5, 2), GRAM[2, 5] + 0.25)
    where = r"is not symmetric: entries \([25], [25]\).*differ by 0\.25"
    for number, kernels in matrix_array_and_stack(broken):
        with refused(f"Kernel 'kernel{number}' {where}"):
            on_kernels(entry, kernels)


@every_estimator
def test_indefinite_kernel(entry):
    where = "is not positive semi-definite: its eigenvalues go from -"
    for number, kernels in matrix_array_and_stack(GRAM - 3 * np.outer(X[:, 0], X[:, 0])):
        with refused(f"Kernel 'kernel{number}' {where}"):
            on_kernels(entry, kernels)
    with refused("Kernel 'negative' is not positive semi-definite"):
        on_table(entry, kernels=[("fine", Linear()), ("negative", lambda A, B: -A @ B.T)])


@every_estimator
def test_rounding_of_integers_is_forgotten_with_them(entry):
    rounded = np.round(5 * (GRAM + 1))
    model = on_kernels(entry, rounded.astype(int))
    model.predict(rounded[:2].astype(int))
    with refused("not positive semi-definite"):
        model.fit(rounded, entry.targets(Y))
    stack = KernelStack(rounded[None], ["float"], gram=True).with_features(X)
    with refused("not positive semi-definite"):
        model.set_params(**({"gating__features": None} if entry.localized else {})).fit(
            stack, entry.targets(Y)
        )


def infinite(A, B):
    return np.full((len(A), len(B)), np.inf)


@every_estimator
def test_kernel_that_evaluates_to_infinity(entry):
    with refused(r"kernel 'overflow': .*not finite \(inf\) at row 0, column 0"):
        on_table(entry, kernels=[("fine", Linear()), ("overflow", infinite)])


@every_estimator
def test_words(entry):
    table, words = X.astype(object), GRAM.astype(object)
    table[3, 1] = words[3, 1] = "word"
    with refused("could not convert string to float: 'word'"):
        on_table(entry, table)
    where = "column 1 holds numbers, and 1 entries that are none, the first 'word' at row 3"
    with refused(where):
        on_table(entry, pd.DataFrame(table))
    if entry.localized:
        where = "features of the gate: X: column 1 .*could not convert string to float: 'word'"
        with refused(where):
            on_table(entry, pd.DataFrame(table), features=slice(None))
    with refused("could not convert string to float: 'word'"):
        on_kernels(entry, words)
    with refused("Kernel 'kernel1' does not hold numbers only: .*'word'"):
        on_kernels(entry, layers(GRAM.astype(object), words))


# -- shapes ----------------------------------------------------------------------------------


@every_estimator
@pytest.mark.parametrize(
    ("kernels", "message"),
    [
        (GRAM[:, :7], "square kernel matrix of the training samples.*got 12 x 7"),
        (layers(GRAM[:, :7]), "square kernel matrix of the training samples.*got 12 x 7"),
        (np.stack([GRAM, GRAM]), r"\(2, 12, 12\) looks like \(n_kernels, rows, cols\).*moveaxis"),
        (GRAM[0], "Expected 2D array, got 1D array"),
        (GRAM[None, None], "Found array with dim 4"),
        (np.empty((N_ROWS, N_ROWS, 0)), "needs at least one kernel"),
        (KernelStack.from_arrays(GRAM[:, :7]), "Training needs square.*12 x 7 block"),
        (KernelStack.from_arrays(GRAM, gram=False), "12 x 12 block between different samples"),
    ],
)
def test_shape_of_training_kernels(entry, kernels, message):
    with refused(message):
        on_kernels(entry, kernels)


@every_estimator
@pytest.mark.parametrize(
    ("block", "message"),
    [
        (BLOCK[:, :7], "X has 7 features, but NAME is expecting 12 features"),
        (layers(BLOCK, BLOCK)[:, :7], "X has 7 features.*one column per training sample"),
        (np.stack([BLOCK, BLOCK]), "X has 4 features.*one column per training sample"),
        (BLOCK, "X has 1 kernels, but NAME was fitted on 2: kernel0, kernel1"),
        (layers(BLOCK, BLOCK, BLOCK), "X has 3 kernels, but NAME was fitted on 2"),
        (BLOCK[0], "Expected 2D array, got 1D array"),
    ],
)
def test_shape_of_a_test_block(entry, block, message):
    model = on_kernels(entry, layers(GRAM, GRAM + 1))
    for method in METHODS:
        if hasattr(model, method):
            with refused(message.replace("NAME", entry.name)):
                getattr(model, method)(block)


@every_estimator
def test_names_of_a_test_block(entry):
    names = ["shape", "texture"]
    model = on_kernels(entry, KernelStack.from_arrays([GRAM, GRAM + 1], names))
    swapped = KernelStack.from_arrays([BLOCK, BLOCK], names[::-1])
    with refused(r"\(texture, shape\) are not those of training \(shape, texture\)"):
        model.predict(swapped)
    with refused(f"X has 1 kernels, but {entry.name} was fitted on 2: shape, texture"):
        model.predict(swapped.select([0]))


@every_estimator
def test_as_many_kernels_as_training_samples(entry):
    scales = np.arange(1.0, N_ROWS + 1)
    names = [f"kernel{j}" for j in range(N_ROWS)]
    model = on_kernels(entry, (GRAM + 1)[:, :, None] * scales)
    blocks = KernelStack.from_arrays(scales[:, None, None] * BLOCK, names)
    np.testing.assert_array_equal(model.predict(BLOCK[:, :, None] * scales), model.predict(blocks))


@every_estimator
def test_spherical_test_block_without_self_similarities(entry):
    model = on_kernels(entry, GRAM + 1, normalize="spherical")
    with refused(r"needs the self-similarities k\(x, x\).*row_diag="):
        model.predict(BLOCK)


@every_estimator
@pytest.mark.parametrize(
    ("table", "message"),
    [
        (X[:0], r"0 sample\(s\)"),
        (X[:, :0], r"0 feature\(s\)"),
        (FRAME[:0], r"0 sample\(s\)"),
        (FRAME[[]], r"0 feature\(s\)"),
        (pl.DataFrame(FRAME.to_dict("list"))[:0], r"0 sample\(s\)"),
        (X[0], "Expected 2D array, got 1D array"),
        (X[None], "Found array with dim 3"),
    ],
)
def test_shape_of_a_table(entry, table, message):
    with refused(message):
        on_table(entry, table, y=Y[: len(table)])


@every_estimator
def test_a_stack_without_precomputed(entry):
    stack, model = KernelStack.from_arrays(GRAM), on_table(entry)
    for answer in (model.fit, model.predict):
        arguments = (stack, entry.targets(Y)) if answer == model.fit else (stack,)
        with refused('KernelStack is passed with kernels="precomputed"'):
            answer(*arguments)


@every_estimator
def test_more_kernels_than_memory_holds(entry, monkeypatch):
    monkeypatch.setattr(numerics, "available_memory", lambda: 1000)
    message = (
        r"kernel stack of shape \([78], 12, 12\) needs .* GiB, but .* GiB are available.*memmap"
    )
    with refused(message, MemoryError):
        on_table(entry)
    with refused(r"shape \(2, 12, 12\) needs .* GiB", MemoryError):
        on_kernels(entry, layers(GRAM, GRAM))


# -- columns ---------------------------------------------------------------------------------


@every_estimator
@pytest.mark.parametrize(
    ("name", "columns", "table", "message"),
    [
        ("colour", ["red"], FRAME, r"columns=\['red'\].*the columns 'a', 'b', 'c'"),
        ("colour", ["a"], X, ".*X has columns 0 to 2 and no column names"),
        ("last", [3], X, r"columns=\[3\].*X has columns 0 to 2"),
    ],
)
def test_columns_that_do_not_exist(entry, name, columns, table, message):
    with refused(f"kernel '{name}': RBF: {message}"):
        on_table(entry, table, [(name, RBF().on(columns))])


@every_estimator
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda frame: frame[["b", "a", "c"]], "must be in the same order"),
        (lambda frame: frame.rename(columns={"a": "z"}), r"unseen at fit time:\n- z"),
        (lambda frame: frame[["a", "b"]], r"yet now missing:\n- c"),
        (lambda frame: frame.assign(d=1.0), r"unseen at fit time:\n- d"),
    ],
)
def test_other_columns_at_prediction(entry, change, message):
    model = on_table(entry, FRAME)
    for method in METHODS:
        if hasattr(model, method):
            with refused(message):
                getattr(model, method)(change(FRAME))


@every_estimator
def test_fewer_columns_at_prediction(entry):
    model = on_table(entry)
    with refused(f"X has 2 features, but {entry.name} is expecting 3 features"):
        model.predict(X[:, :2])


# -- before fit ------------------------------------------------------------------------------


@every_estimator
def test_methods_before_fit_and_after_one_that_failed(entry):
    model = entry.make()
    methods = [method for method in METHODS if hasattr(model, method)]
    for method in methods:
        with refused(f"{entry.name} instance is not fitted yet", NotFittedError):
            getattr(model, method)(X)
    with refused(r"missing value \(NaN\) at row 0"):
        model.fit(changed(X, (0, 0), np.nan), entry.targets(Y))
    for method in methods:
        with refused(f"{entry.name} instance is not fitted yet", NotFittedError):
            getattr(model, method)(X)
