"""What the support vector machines refuse, and what they answer where little can be learnt."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from manykernels import MKSVC, MKSVR, KernelStack, MKOneClassSVM, _memory
from manykernels.kernels import RBF, Linear
from manykernels.solvers import SOLVERS, Newton

N_ROWS = 12
rng = np.random.default_rng(0)
X = rng.normal(size=(N_ROWS, 3))
Y = np.arange(N_ROWS) % 2
GRAM = X @ X.T
BLOCK = rng.normal(size=(4, 3)) @ X.T
FRAME = pd.DataFrame(X, columns=["a", "b", "c"])
KINDS = [MKSVC, MKSVR, MKOneClassSVM]
every_kind = pytest.mark.parametrize("kind", KINDS)
every_form = pytest.mark.parametrize("form", ["table", "matrix", "stack"])


def refused(message, error=ValueError):
    return pytest.raises(error, match=message)


def changed(array, index, value):
    array = np.array(array, dtype=float)
    array[index] = value
    return array


def layers(*matrices):
    return np.stack(matrices, axis=-1)


def given(form):
    data = {"table": X, "matrix": GRAM, "stack": KernelStack.from_arrays(GRAM)}[form]
    return (None if form == "table" else "precomputed"), data


# -- values ----------------------------------------------------------------------------------

NOT_FINITE = [(np.nan, "NaN"), (np.inf, "inf"), (-np.inf, "inf")]
either_value = pytest.mark.parametrize(("value", "shown"), NOT_FINITE)


@every_kind
@either_value
def test_table_with_values_that_are_not_finite(kind, value, shown):
    broken = changed(X, (2, 1), value)
    message = "Input X contains " + {"NaN": "NaN", "inf": "infinity"}[shown]
    with refused(message):
        kind().fit(broken, Y)
    with refused(message):
        kind().fit(X, Y).predict(broken)


@every_kind
@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_dataframe_with_values_that_are_not_finite(kind, frame):
    columns = dict(zip("abc", changed(X, (2, 1), np.nan).T, strict=True))
    kernels = [("clean", RBF().on(["a"])), ("broken", RBF().on(["b", "c"]))]
    with refused("kernel 'broken': RBF: Input contains NaN"):
        kind(kernels).fit(frame(columns), Y)


@every_kind
@either_value
def test_kernel_with_values_that_are_not_finite(kind, value, shown):
    broken = changed(changed(GRAM, (3, 4), value), (4, 3), value)
    where = rf"has a value that is not finite \(-?{shown}\) at row 3, column 4"
    with refused(f"Kernel 'kernel0' {where}"):
        kind("precomputed").fit(broken, Y)
    with refused(f"Kernel 'kernel1' {where}"):
        kind("precomputed").fit(layers(GRAM, broken), Y)
    stack = KernelStack(np.stack([GRAM, broken]), ["shape", "texture"], gram=True)
    with refused(f"Kernel 'texture' {where}"):
        kind("precomputed").fit(stack, Y)


def forms(matrix):
    stack = KernelStack(np.stack([GRAM, matrix]), ["kernel0", "kernel1"], gram=True)
    return [(0, matrix), (1, layers(GRAM, matrix)), (1, stack)]


@every_kind
def test_asymmetric_kernel(kind):
    for number, kernels in forms(changed(GRAM, (5, 2), GRAM[2, 5] + 0.25)):
        with refused(rf"Kernel 'kernel{number}' is not symmetric: .*differ by 0\.25"):
            kind("precomputed").fit(kernels, Y)


@every_kind
def test_indefinite_kernel(kind):
    for number, kernels in forms(GRAM - 3 * np.outer(X[:, 0], X[:, 0])):
        with refused(rf"Kernel 'kernel{number}' is not positive semi-definite"):
            kind("precomputed").fit(kernels, Y)
    with refused("Kernel 'negative' is not positive semi-definite"):
        kind([("fine", Linear()), ("negative", lambda A, B: -A @ B.T)]).fit(X, Y)


def test_only_machines_with_a_bias_take_a_kernel_less_a_constant():
    MKSVC("precomputed").fit(GRAM - 1.0, Y)
    MKSVR("precomputed").fit(GRAM - 1.0, X[:, 0])
    with refused("Kernel 'kernel0' is not positive semi-definite"):
        MKOneClassSVM("precomputed").fit(GRAM - 1.0)


@every_kind
def test_kernel_that_evaluates_to_infinity(kind):
    def infinite(A, B):
        return np.full((len(A), len(B)), np.inf)

    with refused(r"kernel 'overflow': .*not finite \(inf\) at row 0, column 0"):
        kind([("fine", Linear()), ("overflow", infinite)]).fit(X, Y)


@every_kind
def test_words(kind):
    for convert in (np.asarray, pd.DataFrame):
        table = X.astype(object)
        table[3, 1] = "word"
        with refused("could not convert string to float: 'word'"):
            kind().fit(convert(table), Y)
    words = GRAM.astype(object)
    words[3, 1] = "word"
    with refused("Kernel 'kernel1' does not hold numbers only: .*'word'"):
        kind("precomputed").fit(layers(GRAM.astype(object), words), Y)


# -- shapes ----------------------------------------------------------------------------------


@every_kind
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
def test_shape_of_training_kernels(kind, kernels, message):
    with refused(message):
        kind("precomputed").fit(kernels, Y)


@every_kind
@pytest.mark.parametrize(
    ("block", "message"),
    [
        (BLOCK[:, :7], "X has 7 features, but MK.* is expecting 12 features"),
        (layers(BLOCK, BLOCK)[:, :7], "X has 7 features.*one column per training sample"),
        (np.stack([BLOCK, BLOCK]), "X has 4 features.*one column per training sample"),
        (BLOCK, "X has 1 kernels, but MK.* was fitted on 2: kernel0, kernel1"),
        (layers(BLOCK, BLOCK, BLOCK), "X has 3 kernels, but MK.* was fitted on 2"),
        (BLOCK[0], "Expected 2D array, got 1D array"),
    ],
)
def test_shape_of_a_test_block(kind, block, message):
    model = kind("precomputed").fit(layers(GRAM, GRAM + 1), Y)
    with refused(message):
        model.predict(block)


@every_kind
def test_names_of_a_test_block(kind):
    names = ["shape", "texture"]
    model = kind("precomputed").fit(KernelStack.from_arrays([GRAM, GRAM + 1], names), Y)
    swapped = KernelStack.from_arrays([BLOCK, BLOCK], names[::-1])
    with refused(r"\(texture, shape\) are not those of training \(shape, texture\)"):
        model.predict(swapped)


@every_kind
def test_spherical_test_block_without_self_similarities(kind):
    model = kind("precomputed", normalize="spherical").fit(GRAM + 1, Y)
    with refused(r"needs the self-similarities k\(x, x\).*row_diag="):
        model.predict(BLOCK)


@every_kind
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
def test_shape_of_a_table(kind, table, message):
    with refused(message):
        kind().fit(table, Y[: len(table)])


@every_kind
def test_a_stack_without_saying_so(kind):
    stack = KernelStack.from_arrays(GRAM)
    with refused('KernelStack is passed with kernels="precomputed"'):
        kind().fit(stack, Y)
    with refused('KernelStack is passed with kernels="precomputed"'):
        kind().fit(X, Y).predict(stack)


@every_kind
def test_other_columns_at_prediction(kind):
    with refused("must be in the same order"):
        kind().fit(FRAME, Y).predict(FRAME[["b", "a", "c"]])
    with refused(f"X has 2 features, but {kind.__name__} is expecting 3 features"):
        kind().fit(X, Y).predict(X[:, :2])
    with refused(r"kernel 'last': RBF: columns=\[3\].*X has columns 0 to 2"):
        kind([("last", RBF().on([3]))]).fit(X, Y)


@every_kind
def test_more_kernels_than_memory_holds(kind, monkeypatch):
    monkeypatch.setattr(_memory, "available_memory", lambda: 1000)
    message = r"kernel stack of shape \(6, 12, 12\) needs .* GiB, but .* GiB are available.*memmap"
    with refused(message, MemoryError):
        kind().fit(X, Y)


# -- parameters ------------------------------------------------------------------------------

OF_ALL = [
    ("p", 0.99),
    ("p", np.nan),
    ("p", "two"),
    ("p", None),
    ("tol", 0.0),
    ("tol", np.nan),
    ("max_iter", 0),
    ("max_iter", 1.5),
    ("normalize", "unit"),
    ("normalize", 1),
    ("verbose", "loud"),
]
OF_SOME = {
    MKSVC: [
        *[("C", value) for value in (0.0, -1.0, np.nan, np.inf, "auto", None)],
        ("loss", "square"),
        ("multi_class", "ovr"),
        ("class_weight", "uniform"),
        ("class_weight", [1.0, 2.0]),
    ],
    MKSVR: [
        *[("C", value) for value in (0.0, -1.0, np.nan, np.inf, "joint", None)],
        *[("epsilon", value) for value in (-0.1, np.nan, np.inf, None)],
    ],
    MKOneClassSVM: [("nu", value) for value in (0.0, -0.1, 1.01, np.nan, None)],
}


@pytest.mark.parametrize(
    ("kind", "name", "value"), [(kind, *pair) for kind in KINDS for pair in OF_ALL + OF_SOME[kind]]
)
def test_parameters_outside_their_range(kind, name, value):
    message = f"The '{name}' parameter of {kind.__name__} must be .*Got {re.escape(repr(value))}"
    with refused(message):
        kind(**{name: value}).fit(X, Y)


def test_learning_c_with_the_hinge_loss():
    with refused('C="joint" needs loss="squared_hinge"'):
        MKSVC(C="joint").fit(X, Y)


def never(A, B):
    raise AssertionError("a kernel was computed")


@every_kind
@pytest.mark.parametrize("solver", ["simplex", None, 3, Newton, object()])
def test_unknown_solver(kind, solver):
    message = r"solver must be one of \['.*'newton'.*'\] or an object with a method solve, got "
    with refused(message + re.escape(repr(solver))):
        kind([("k", never)], solver=solver).fit(X, Y)


@every_kind
@pytest.mark.parametrize(
    ("solver", "p", "reason"),
    [
        ("sdp", 1, "works for the square loss only"),
        ("coordinate", 1, "works for the square loss only"),
        ("qcqp", 2, "works at p=1 only"),
        ("silp", 2, "works at p=1 only"),
        ("reduced-gradient", 2, "works at p=1 only"),
    ],
)
def test_a_solver_that_does_not_fit_names_those_that_do(kind, solver, p, reason):
    message = f"solver='{solver}' {reason}.*; solver='newton' or .* takes this problem"
    with refused(message) as caught:
        kind([("k", never)], p=p, solver=solver).fit(X, Y)
    named = re.findall(r"solver='([a-z-]+)'", str(caught.value))[1:]
    assert set(named) <= set(SOLVERS) - {solver}
    for name in named:
        model = kind(Linear(), p=p, solver=name, normalize=None, tol=1e-2).fit(X + 3.0, Y)
        assert model.certificate_.converged
        assert model.solver_ == name


@every_kind
@pytest.mark.parametrize(
    ("kernels", "error", "message"),
    [
        ([("a", RBF()), ("a", Linear())], ValueError, r"not unique: \['a', 'a'\]"),
        ([("a", RBF()), Linear()], ValueError, r"pair \(name, kernel\), got Linear\(\)"),
        ([], ValueError, r"list of \(name, kernel\) pairs, at least one"),
        ("gaussian", ValueError, "no kernel named 'gaussian'.*'rbf'"),
        ([("a", 3)], TypeError, "kernel 'a': 3 is not a kernel"),
    ],
)
def test_kernels(kind, kernels, error, message):
    with refused(message, error):
        kind(kernels).fit(X, Y)


@pytest.mark.parametrize(
    ("class_weight", "message"),
    [
        ({0: 0.0, 1: 1.0}, "class_weight must be positive and finite for every class"),
        ({0: np.nan}, "class_weight must be positive and finite for every class"),
        ({0: np.inf}, "class_weight must be positive and finite for every class"),
        ({7: 2.0}, r"classes, \[0, 1\], are not in class_weight"),
    ],
)
def test_class_weights(class_weight, message):
    with refused(message):
        MKSVC(class_weight=class_weight).fit(X, Y)


# -- targets and weights ---------------------------------------------------------------------

OF_BOTH = [
    (None, "requires y to be passed, but the target y is None"),
    (np.where(Y == 0, 1.0, np.nan), "Input y contains NaN"),
    (np.where(Y == 0, 1.0, np.inf), "Input y contains infinity"),
    (np.stack([Y, 1 - Y], axis=1), r"y should be a 1d array, got an array of shape \(12, 2\)"),
    (Y[:-1], r"inconsistent numbers of samples: \[12, 11\]"),
]
TARGETS = {
    MKSVC: [
        (np.zeros(N_ROWS), r"at least 2 classes, got 1 class: \[0\.0\]"),
        (["same"] * N_ROWS, r"at least 2 classes, got 1 class: \['same'\]"),
        (X[:, 0], "Unknown label type: continuous"),
    ],
    MKSVR: [(["word"] * N_ROWS, "could not convert string to float: .*'word'")],
}


@every_form
@pytest.mark.parametrize(
    ("kind", "target", "message"),
    [(kind, *pair) for kind in (MKSVC, MKSVR) for pair in OF_BOTH + TARGETS[kind]],
)
def test_targets(form, kind, target, message):
    kernels, data = given(form)
    with refused(message):
        kind(kernels).fit(data, target)


@every_form
@every_kind
@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones(N_ROWS - 1), r"sample_weight\.shape == \(11,\), expected \(12,\)"),
        (np.ones((N_ROWS, 2)), "Sample weights must be 1D"),
        (changed(np.ones(N_ROWS), 3, -1.0), "Negative values in data passed to `sample_weight`"),
        (np.zeros(N_ROWS), "Sample weights must contain at least one non-zero number"),
        (np.full(N_ROWS, np.nan), "Input sample_weight contains NaN"),
        (np.full(N_ROWS, np.inf), "Input sample_weight contains infinity"),
    ],
)
def test_sample_weights(form, kind, weights, message):
    kernels, data = given(form)
    with refused(message):
        kind(kernels).fit(data, Y, sample_weight=weights)


def test_weights_that_leave_one_class():
    with refused(r"at least 2 classes, got 1 class: \[1\]"):
        MKSVC().fit(X, Y, sample_weight=Y)


# -- before fit ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "method"),
    [
        *[(kind, "predict") for kind in KINDS],
        (MKSVC, "decision_function"),
        (MKOneClassSVM, "decision_function"),
        (MKOneClassSVM, "score_samples"),
    ],
)
def test_methods_before_fit_and_after_one_that_failed(kind, method):
    model = kind()
    with refused(f"{kind.__name__} instance is not fitted yet", NotFittedError):
        getattr(model, method)(X)
    with refused("Input X contains NaN"):
        model.fit(changed(X, (0, 0), np.nan), Y)
    with refused(f"{kind.__name__} instance is not fitted yet", NotFittedError):
        getattr(model, method)(X)


@every_kind
def test_stopping_early_warns_with_the_gap(kind):
    with pytest.warns(ConvergenceWarning, match="relative gap") as caught:
        model = kind(p=1.1, max_iter=1, tol=1e-14).fit(X, Y)
    gap = model.certificate_.rel_gap
    assert gap > 1e-14
    assert not model.certificate_.converged
    assert f"{kind.__name__} stopped at relative gap {gap:.2e} > tol=1e-14" in str(
        caught[0].message
    )
    assert caught[0].filename == __file__


# -- little to learn -------------------------------------------------------------------------

NORMALIZATIONS = ["multiplicative", "trace", "spherical", None]


@pytest.mark.parametrize("normalize", NORMALIZATIONS)
@pytest.mark.parametrize("p", [1, 1.5, np.inf])
@pytest.mark.parametrize("epsilon", [0.0, 0.1])
def test_constant_targets_are_predicted(p, epsilon, normalize):
    model = MKSVR(p=p, epsilon=epsilon, normalize=normalize).fit(X, np.full(N_ROWS, 3.5))
    assert_allclose(model.predict(X[:4]), 3.5, rtol=1e-12)
    assert model.certificate_.converged
    assert len(model.support_) == len(model.support_vectors_) == model.n_support_[0] == 0
    assert model.dual_coef_.shape == (1, 0)


@pytest.mark.filterwarnings("ignore:Nothing can be learnt from kernels")
@pytest.mark.parametrize("normalize", NORMALIZATIONS)
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("p", [1, 1.5, np.inf])
def test_constant_data_predict_the_larger_class(p, loss, normalize):
    y = np.array(["a", "a", "b"] * 4)
    for data in (np.ones((N_ROWS, 3)), np.zeros((N_ROWS, 1))):
        model = MKSVC(p=p, loss=loss, normalize=normalize).fit(data, y)
        assert set(model.predict(data)) == {"a"}
        assert model.certificate_.converged


@pytest.mark.filterwarnings("ignore:Nothing can be learnt from kernels")
@pytest.mark.parametrize("normalize", NORMALIZATIONS)
def test_constant_data_predict_the_median_target(normalize):
    targets = np.array([1.0, 2.0, 2.0, 9.0])
    model = MKSVR(epsilon=0.0, normalize=normalize).fit(np.ones((4, 2)), targets)
    assert_allclose(model.predict(np.ones((2, 2))), 2.0, rtol=1e-12)
    assert model.certificate_.converged


@pytest.mark.parametrize("multi_class", ["shared", "separate"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_a_class_with_one_sample(multi_class, loss):
    y = np.where(np.arange(N_ROWS) == 5, 2, Y)
    model = MKSVC("rbf", C=100.0, loss=loss, multi_class=multi_class).fit(X, y)
    assert_array_equal(model.predict(X), y)
    assert model.n_support_[2] == 1
    assert model.certificate_.converged


@pytest.mark.parametrize("multi_class", ["shared", "separate"])
def test_as_many_classes_as_samples(multi_class):
    model = MKSVC("rbf", C=100.0, multi_class=multi_class).fit(X, np.arange(N_ROWS))
    assert_array_equal(model.predict(X), np.arange(N_ROWS))


@pytest.mark.parametrize("normalize", NORMALIZATIONS)
def test_very_few_samples(normalize):
    for n in (2, 3):
        for params in ({}, {"loss": "squared_hinge", "C": "joint"}):
            model = MKSVC(normalize=normalize, **params).fit(X[:n], Y[:n])
            assert_array_equal(model.predict(X[:2]), Y[:2])
            assert model.certificate_.converged
    for n in (1, 2, 3):
        model = MKSVR(C=1e3, epsilon=0.0, normalize=normalize).fit(X[:n], [5.0, 7.0, 9.0][:n])
        assert_allclose(model.predict(X[:n]), [5.0, 7.0, 9.0][:n], rtol=1e-4)
        inside = MKOneClassSVM(nu=0.1, normalize=normalize).fit(X[:n] + 9.0)
        assert_array_equal(inside.predict(X[:n] + 9.0), 1)
    with refused("at least 2 classes, got 1 class"):
        MKSVC(normalize=normalize).fit(X[:1], Y[:1])


# -- scales ----------------------------------------------------------------------------------


def fitted_scores(kind, train, test, **params):
    model = kind("precomputed", tol=1e-7, **params).fit(KernelStack.from_arrays(train), Y)
    decide = model.predict if kind is MKSVR else model.decision_function
    return model, decide(KernelStack.from_arrays(test, gram=False))


@every_kind
@pytest.mark.parametrize("p", [1, 2, np.inf])
@pytest.mark.parametrize("normalize", ["multiplicative", "trace"])
def test_kernels_scaled_1e12_apart(kind, p, normalize):
    train, test = np.array([GRAM + 1, GRAM**2]), np.array([BLOCK + 1, BLOCK**2])
    scales = np.array([1e6, 1e-6])[:, None, None]
    params = {"p": p, "normalize": normalize}
    model, expected = fitted_scores(kind, train, test, **params)
    scaled, scores = fitted_scores(kind, train * scales, test * scales, **params)
    assert_allclose(scaled.weights_, model.weights_, atol=1e-5)
    # One-class scores are differences of sums as large as the intercept.
    size = max(np.abs(expected).max(), np.abs(model.intercept_).max())
    assert_allclose(scores, expected, rtol=0, atol=1e-5 * size)


@pytest.mark.parametrize("scale", [1e-6, 1e6])
@pytest.mark.parametrize("kind", [MKSVC, MKSVR])
def test_kernels_not_normalised_are_as_large_as_their_c_is_small(kind, scale):
    """Kernels times s and C over s: the same function, coefficients over s."""
    train, test = np.array([GRAM + 1, 1e-12 * GRAM**2]), np.array([BLOCK + 1, 1e-12 * BLOCK**2])
    params = {"p": 1, "normalize": None}
    model, expected = fitted_scores(kind, train, test, C=0.5, **params)
    scaled, scores = fitted_scores(kind, scale * train, scale * test, C=0.5 / scale, **params)
    assert_allclose(scores, expected, rtol=0, atol=1e-5 * np.abs(expected).max())
    assert_allclose(scaled.weights_, model.weights_, atol=1e-6)


@pytest.mark.parametrize("scale", [1e-8, 1e8])
def test_the_unit_of_the_data_and_targets_does_not_matter(scale):
    expected = MKSVC(tol=1e-7).fit(X, Y).decision_function(X)
    scaled = MKSVC(tol=1e-7).fit(scale * X, Y).decision_function(scale * X)
    assert_allclose(scaled, expected, rtol=0, atol=1e-4)
    targets = X[:, 0] + 5.0
    expected = MKSVR(tol=1e-7).fit(X, targets).predict(X)
    scaled = MKSVR(tol=1e-7, C=scale, epsilon=0.1 * scale).fit(X, scale * targets).predict(X)
    assert_allclose(scaled / scale, expected, rtol=0, atol=1e-4)


@pytest.mark.parametrize("C", [1e-9, 1e-6, 1e6, 1e9])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_extreme_penalties(C, loss):
    y = (X[:, 0] > 0).astype(int)
    model = MKSVC("linear", C=C, loss=loss).fit(X + 2.0 * y[:, None], y)
    assert model.certificate_.converged
    # A soft machine ranks by the difference of the class means.
    scores = model.decision_function(X + 2.0 * y[:, None])
    assert scores[y == 1].min() > scores[y == 0].max() or C < 1
    assert scores[y == 1].mean() > scores[y == 0].mean()


def test_a_line_through_the_origin_of_one_class():
    """The origin lies among the samples, so no half-space keeps away from it."""
    for scale in (1.0, 1e6):
        data = scale * np.vstack([X, -X])
        with pytest.warns(ConvergenceWarning, match="lost in rounding errors"):
            model = MKOneClassSVM("linear", normalize=None).fit(data)
        assert_array_equal(model.predict(data), 1)
