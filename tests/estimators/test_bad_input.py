"""What MKFDA refuses, and that each refusal says what is wrong and where."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_array_equal
from sklearn.exceptions import NotFittedError

from manykernels import MKFDA, KernelStack, _memory
from manykernels.kernels import RBF, Linear
from manykernels.solvers import Newton

N_ROWS = 12
rng = np.random.default_rng(0)
X = rng.normal(size=(N_ROWS, 3))
y = np.arange(N_ROWS) % 2
GRAM = X @ X.T
BLOCK = rng.normal(size=(4, 3)) @ X.T
FRAME = pd.DataFrame(X, columns=["a", "b", "c"])


def refused(message, error=ValueError):
    return pytest.raises(error, match=message)


def precomputed(**params):
    return MKFDA("precomputed", **params)


def changed(array, index, value):
    array = np.array(array, dtype=float)
    array[index] = value
    return array


def layers(*matrices):
    return np.stack(matrices, axis=-1)


# -- values ----------------------------------------------------------------------------------

NOT_FINITE = [(np.nan, "NaN"), (np.inf, "inf"), (-np.inf, "inf")]
either_value = pytest.mark.parametrize(("value", "shown"), NOT_FINITE)


@either_value
def test_table_with_values_that_are_not_finite(value, shown):
    broken = changed(X, (2, 1), value)
    message = "Input X contains " + {"NaN": "NaN", "inf": "infinity"}[shown]
    with refused(message):
        MKFDA().fit(broken, y)
    with refused(message):
        MKFDA().fit(X, y).predict(broken)


@either_value
@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_dataframe_with_values_that_are_not_finite(value, shown, frame):
    columns = dict(zip("abc", changed(X, (2, 1), value).T, strict=True))
    kernels = [("clean", RBF().on(["a"])), ("broken", RBF().on(["b", "c"]))]
    message = "kernel 'broken': RBF: Input contains " + {"NaN": "NaN", "inf": "infinity"}[shown]
    with refused(message):
        MKFDA(kernels).fit(frame(columns), y)


def test_a_column_that_no_kernel_compares_may_hold_anything():
    frame = FRAME.assign(word="w", broken=np.nan)
    model = MKFDA([("clean", RBF().on(["a", "b"]))]).fit(frame, y)
    expected = MKFDA([("clean", RBF().on([0, 1]))]).fit(X, y)
    assert_array_equal(model.predict(frame), expected.predict(X))


@either_value
def test_kernel_with_values_that_are_not_finite(value, shown):
    broken = changed(changed(GRAM, (3, 4), value), (4, 3), value)
    where = rf"has a value that is not finite \(-?{shown}\) at row 3, column 4"
    with refused(f"Kernel 'kernel0' {where}"):
        precomputed().fit(broken, y)
    with refused(f"Kernel 'kernel1' {where}"):
        precomputed().fit(layers(GRAM, broken), y)
    stack = KernelStack(np.stack([GRAM, broken]), ["shape", "texture"], gram=True)
    with refused(f"Kernel 'texture' {where}"):
        precomputed().fit(stack, y)


@either_value
def test_test_block_with_values_that_are_not_finite(value, shown):
    where = rf"has a value that is not finite \(-?{shown}\) at row 2, column 7"
    broken = changed(BLOCK, (2, 7), value)
    with refused(f"Kernel 'kernel0' {where}"):
        precomputed().fit(GRAM, y).predict(broken)
    with refused(f"Kernel 'kernel1' {where}"):
        precomputed().fit(layers(GRAM, GRAM), y).predict(layers(BLOCK, broken))


def forms(matrix):
    stack = KernelStack(np.stack([GRAM, matrix]), ["kernel0", "kernel1"], gram=True)
    return {"matrix": (0, matrix), "array": (1, layers(GRAM, matrix)), "stack": (1, stack)}


@pytest.mark.parametrize("form", ["matrix", "array", "stack"])
def test_asymmetric_kernel(form):
    number, kernels = forms(changed(GRAM, (5, 2), GRAM[2, 5] + 0.25))[form]
    message = rf"Kernel 'kernel{number}' is not symmetric: entries \([25], [25]\).*differ by 0\.25"
    with refused(message):
        precomputed().fit(kernels, y)


@pytest.mark.parametrize("form", ["matrix", "array", "stack"])
def test_indefinite_kernel(form):
    number, kernels = forms(GRAM - 3 * np.outer(X[:, 0], X[:, 0]))[form]
    message = rf"Kernel 'kernel{number}' is not positive semi-definite: its eigenvalues go from -"
    with refused(message):
        precomputed().fit(kernels, y)


def test_indefinite_kernel_of_a_table():
    with refused("Kernel 'negative' is not positive semi-definite"):
        MKFDA([("fine", Linear()), ("negative", lambda A, B: -A @ B.T)]).fit(X, y)


def test_rounding_of_integers_is_forgotten_with_them():
    rounded = np.round(5 * GRAM)
    model = precomputed().fit(rounded.astype(int), y)
    model.predict(rounded[:2].astype(int))
    for kernels in (rounded, KernelStack(rounded[None], ["float"], gram=True)):
        with refused("not positive semi-definite"):
            model.fit(kernels, y)


def infinite(A, B):
    return np.full((len(A), len(B)), np.inf)


def test_kernel_that_evaluates_to_infinity():
    with refused(r"kernel 'overflow': .*not finite \(inf\) at row 0, column 0"):
        MKFDA([("fine", Linear()), ("overflow", infinite)]).fit(X, y)


@pytest.mark.parametrize("convert", [np.asarray, pd.DataFrame])
def test_words_in_a_table(convert):
    table = X.astype(object)
    table[3, 1] = "word"
    with refused("could not convert string to float: 'word'"):
        MKFDA().fit(convert(table), y)


def test_words_in_a_kernel():
    words = GRAM.astype(object)
    words[3, 1] = "word"
    with refused("could not convert string to float: 'word'"):
        precomputed().fit(words, y)
    with refused("Kernel 'kernel1' does not hold numbers only: .*'word'"):
        precomputed().fit(layers(GRAM.astype(object), words), y)


# -- shapes ----------------------------------------------------------------------------------


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
def test_shape_of_training_kernels(kernels, message):
    with refused(message):
        precomputed().fit(kernels, y)


@pytest.mark.parametrize(
    ("block", "message"),
    [
        (BLOCK[:, :7], "X has 7 features, but MKFDA is expecting 12 features"),
        (layers(BLOCK, BLOCK)[:, :7], "X has 7 features.*one column per training sample"),
        (np.stack([BLOCK, BLOCK]), "X has 4 features.*one column per training sample"),
        (BLOCK, "X has 1 kernels, but MKFDA was fitted on 2: kernel0, kernel1"),
        (layers(BLOCK, BLOCK, BLOCK), "X has 3 kernels, but MKFDA was fitted on 2"),
        (BLOCK[0], "Expected 2D array, got 1D array"),
    ],
)
def test_shape_of_a_test_block(block, message):
    model = precomputed().fit(layers(GRAM, GRAM + 1), y)
    for method in (model.predict, model.transform, model.predict_proba, model.decision_function):
        with refused(message):
            method(block)


def test_names_of_a_test_block():
    names = ["shape", "texture"]
    model = precomputed().fit(KernelStack.from_arrays([GRAM, GRAM + 1], names), y)
    swapped = KernelStack.from_arrays([BLOCK, BLOCK], names[::-1])
    with refused(r"\(texture, shape\) are not those of training \(shape, texture\)"):
        model.predict(swapped)
    with refused("X has 1 kernels, but MKFDA was fitted on 2: shape, texture"):
        model.predict(swapped.select([0]))


def test_as_many_kernels_as_training_samples():
    scales = np.arange(1.0, N_ROWS + 1)
    model = precomputed().fit(GRAM[:, :, None] * scales, y)
    assert_array_equal(
        model.predict(BLOCK[:, :, None] * scales),
        model.predict(KernelStack.from_arrays(scales[:, None, None] * BLOCK)),
    )


def test_spherical_test_block_without_self_similarities():
    model = precomputed(normalize="spherical").fit(GRAM, y)
    with refused(r"needs the self-similarities k\(x, x\).*row_diag="):
        model.predict(BLOCK)


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
def test_shape_of_a_table(table, message):
    with refused(message):
        MKFDA().fit(table, y[: len(table)])


def test_a_stack_without_saying_so():
    stack = KernelStack.from_arrays(GRAM)
    with refused('KernelStack is passed with kernels="precomputed"'):
        MKFDA().fit(stack, y)
    with refused('KernelStack is passed with kernels="precomputed"'):
        MKFDA().fit(X, y).predict(stack)


def test_more_kernels_than_memory_holds(monkeypatch):
    monkeypatch.setattr(_memory, "available_memory", lambda: 1000)
    message = r"kernel stack of shape \(6, 12, 12\) needs .* GiB, but .* GiB are available.*memmap"
    with refused(message, MemoryError):
        MKFDA().fit(X, y)
    with refused(r"shape \(2, 12, 12\) needs .* GiB", MemoryError):
        precomputed().fit(layers(GRAM, GRAM), y)


# -- columns ---------------------------------------------------------------------------------


def test_unknown_column_of_a_dataframe():
    with refused(r"kernel 'colour': RBF: columns=\['red'\].*the columns 'a', 'b', 'c'"):
        MKFDA([("colour", RBF().on(["red"]))]).fit(FRAME, y)


def test_column_name_on_an_array():
    with refused("kernel 'colour': RBF: .*X has columns 0 to 2 and no column names"):
        MKFDA([("colour", RBF().on(["a"]))]).fit(X, y)


def test_column_number_that_does_not_exist():
    with refused(r"kernel 'last': RBF: columns=\[3\].*X has columns 0 to 2"):
        MKFDA([("last", RBF().on([3]))]).fit(X, y)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda frame: frame[["b", "a", "c"]], "must be in the same order"),
        (lambda frame: frame.rename(columns={"a": "z"}), r"unseen at fit time:\n- z"),
        (lambda frame: frame[["a", "b"]], r"yet now missing:\n- c"),
        (lambda frame: frame.assign(d=1.0), r"unseen at fit time:\n- d"),
    ],
)
def test_other_columns_at_prediction(change, message):
    model = MKFDA().fit(FRAME, y)
    with refused(message):
        model.predict(change(FRAME))


def test_fewer_columns_at_prediction():
    with refused("X has 2 features, but MKFDA is expecting 3 features"):
        MKFDA().fit(X, y).predict(X[:, :2])


# -- parameters ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("p", 0.99),
        ("p", -1.0),
        ("p", np.nan),
        ("p", "two"),
        ("p", None),
        ("reg", 0.0),
        ("reg", -1.0),
        ("reg", np.nan),
        ("reg", np.inf),
        ("reg", "auto"),
        ("tol", 0.0),
        ("tol", -1e-6),
        ("tol", np.nan),
        ("max_iter", 0),
        ("max_iter", -1),
        ("max_iter", 1.5),
        ("normalize", "unit"),
        ("normalize", 1),
        ("class_weight", "uniform"),
        ("class_weight", [1.0, 2.0]),
        ("priors", 0.5),
        ("verbose", "loud"),
    ],
)
def test_parameters_outside_their_range(name, value):
    message = f"The '{name}' parameter of MKFDA must be .*Got {re.escape(repr(value))} instead"
    with refused(message):
        MKFDA(**{name: value}).fit(X, y)


@pytest.mark.parametrize("solver", ["simplex", None, 3, Newton, object()])
def test_unknown_solver(solver):
    message = r"solver must be one of \['.*'newton'.*'\] or an object with a method solve, got "
    with refused(message + re.escape(repr(solver))):
        MKFDA(solver=solver).fit(X, y)


@pytest.mark.parametrize(
    ("class_weight", "message"),
    [
        ({0: 0.0, 1: 1.0}, "class_weight must be positive and finite for every class"),
        ({0: -1.0}, "class_weight must be positive and finite for every class"),
        ({0: np.nan}, "class_weight must be positive and finite for every class"),
        ({0: np.inf}, "class_weight must be positive and finite for every class"),
        ({7: 2.0}, r"classes, \[0, 1\], are not in class_weight"),
    ],
)
def test_class_weights(class_weight, message):
    with refused(message):
        MKFDA(class_weight=class_weight).fit(X, y)


@pytest.mark.parametrize(
    "priors", [[1.0], [0.2, 0.3, 0.5], [0.5, 0.6], [1.5, -0.5], [np.nan, 0.5], [[0.5, 0.5]]]
)
def test_priors(priors):
    message = r"priors must be 2 probabilities that sum to 1, one per class \[0, 1\]; got "
    with refused(message + re.escape(repr(priors))):
        MKFDA(priors=priors).fit(X, y)


@pytest.mark.parametrize(
    ("kernels", "error", "message"),
    [
        ([("a", RBF()), ("a", Linear())], ValueError, r"not unique: \['a', 'a'\]"),
        ([("a", RBF()), Linear()], ValueError, r"pair \(name, kernel\), got Linear\(\)"),
        ([], ValueError, r"list of \(name, kernel\) pairs, at least one"),
        ("gaussian", ValueError, "no kernel named 'gaussian'.*'rbf'"),
        (3, TypeError, "3 is not a kernel"),
        ([("a", 3)], TypeError, "kernel 'a': 3 is not a kernel"),
        (RBF, TypeError, "is not a kernel"),
    ],
)
def test_kernels(kernels, error, message):
    with refused(message, error):
        MKFDA(kernels).fit(X, y)


def test_duplicate_names_of_a_stack():
    with refused("Kernel names must differ; repeated: a"):
        KernelStack.from_arrays([GRAM, GRAM], names=["a", "a"])


# -- targets and weights ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (None, "MKFDA requires y to be passed, but the target y is None"),
        (np.zeros(N_ROWS), r"at least 2 classes, got 1 class: \[0\.0\]"),
        (["same"] * N_ROWS, r"at least 2 classes, got 1 class: \['same'\]"),
        (np.arange(N_ROWS), "more samples than classes: 12 samples of 12 classes"),
        (np.where(y == 0, 1.0, np.nan), "Input y contains NaN"),
        (np.where(y == 0, 1.0, np.inf), "Input y contains infinity"),
        (X[:, 0], "Unknown label type: continuous"),
        (np.stack([y, 1 - y], axis=1), r"y should be a 1d array, got an array of shape \(12, 2\)"),
        (y[:-1], r"inconsistent numbers of samples: \[12, 11\]"),
    ],
)
@pytest.mark.parametrize("form", ["table", "matrix", "stack"])
def test_targets(form, target, message):
    model = MKFDA() if form == "table" else precomputed()
    data = {"table": X, "matrix": GRAM, "stack": KernelStack.from_arrays(GRAM)}[form]
    with refused(message):
        model.fit(data, target)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones(N_ROWS - 1), r"sample_weight\.shape == \(11,\), expected \(12,\)"),
        (np.ones((N_ROWS, 2)), "Sample weights must be 1D"),
        (-np.ones(N_ROWS), "Negative values in data passed to `sample_weight`"),
        (np.zeros(N_ROWS), "Sample weights must contain at least one non-zero number"),
        (np.full(N_ROWS, np.nan), "Input sample_weight contains NaN"),
        (y.astype(float), r"at least 2 classes, got 1 class: \[1\]"),
        (np.r_[1.0, 1.0, np.zeros(N_ROWS - 2)], "2 samples of 2 classes"),
    ],
)
@pytest.mark.parametrize("form", ["table", "matrix", "stack"])
def test_sample_weights(form, weights, message):
    model = MKFDA() if form == "table" else precomputed()
    data = {"table": X, "matrix": GRAM, "stack": KernelStack.from_arrays(GRAM)}[form]
    with refused(message):
        model.fit(data, y, sample_weight=weights)


# -- before fit ------------------------------------------------------------------------------

METHODS = ["predict", "decision_function", "predict_proba", "predict_log_proba", "transform"]


@pytest.mark.parametrize("method", METHODS)
def test_methods_before_fit(method):
    with refused("MKFDA instance is not fitted yet", NotFittedError):
        getattr(MKFDA(), method)(X)


@pytest.mark.parametrize("method", METHODS)
def test_methods_after_a_fit_that_failed(method):
    model = MKFDA()
    with refused("at least 2 classes"):
        model.fit(X, np.zeros(N_ROWS))
    with refused("MKFDA instance is not fitted yet", NotFittedError):
        getattr(model, method)(X)
