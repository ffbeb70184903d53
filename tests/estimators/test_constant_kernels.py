"""Kernels that nothing can be learnt from are named, once per fit."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GridSearchCV

from manykernels import MKFDA, MKFDACV, MKSVC, MKSVR, KernelStack, LocalizedSVC, MKOneClassSVM
from manykernels.kernels import RBF, Linear
from manykernels.kernels.composition import Constant
from manykernels.kernels.transforms import Center
from manykernels.losses.square import NotPositiveDefiniteError
from tests.problems import slow

RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.normal(size=(30, 2)), columns=["a", "b"]).assign(same=3.0)
y = (X["a"] > 0).astype(int)
KERNELS = [
    ("good", Linear().on(["a", "b"])),
    ("same", RBF().on(["same"])),
    ("one", Constant(1 / 3)),
    ("zero", Constant(0.0)),
]
CONSTANT = (
    r"constant \(or zero\) on training samples: 'same', 'one', 'zero'\. If .* centre them\.$"
)
ZERO = r"are zero on training samples: 'zero'\.$"


def stack(dtype=float):
    table = X[["a", "b"]].to_numpy()
    arrays = [table @ table.T, np.ones((30, 30)), np.full((30, 30), 1 / 3), np.zeros((30, 30))]
    names = ["good", "same", "one", "zero"]
    return KernelStack.from_arrays(np.array(arrays, dtype=dtype), names)


@pytest.mark.parametrize("estimator", [MKFDA, MKSVC, MKSVR])
@pytest.mark.parametrize("source", ["union", "stack", "float32", "array"])
def test_constant_kernels_are_named(estimator, source):
    if source == "union":
        model, data = estimator(KERNELS), X
    else:
        data = stack(np.float32 if source == "float32" else float)
        model = estimator(kernels="precomputed")
    message = CONSTANT
    if source == "array":
        data, message = np.asarray(data), "'kernel1', 'kernel2', 'kernel3'"
    with pytest.warns(UserWarning, match=message) as caught:
        model.fit(data, y)
    assert len(caught) == 1


@pytest.mark.parametrize(
    "model", [MKOneClassSVM(KERNELS, normalize=None), LocalizedSVC(KERNELS, normalize=None)]
)
def test_where_a_constant_counts_only_zero_is_named(model):
    with pytest.warns(UserWarning, match=ZERO) as caught:
        model.fit(X, y)
    assert len(caught) == 1


@pytest.mark.parametrize("kind", [MKOneClassSVM, LocalizedSVC])
@pytest.mark.parametrize("normalize", ["multiplicative", "trace"])
def test_what_a_division_by_variance_makes_zero_is_named(kind, normalize):
    with pytest.warns(UserWarning, match=CONSTANT) as caught:
        kind(KERNELS, normalize=normalize).fit(X + 3.0, y)
    assert len(caught) == 1


@pytest.mark.parametrize("shift", [1.2e6, 1.4e6, 1e7, 1e9])
@pytest.mark.parametrize("estimator", [MKFDA, MKSVC, MKSVR])
def test_a_model_of_far_data_is_not_constant_in_silence(estimator, shift):
    """Kernels whose variance is rounding beside their size are left out, and named."""
    far = [("lin", Linear()), ("one", Linear().on(["a"]))]
    model = estimator(far, p=1)
    with pytest.warns(UserWarning, match=r"constant \(or zero\) .*: 'lin', 'one'\. If .* centre"):
        model.fit(X[["a", "b"]] + shift, y)
    decide = model.predict if estimator is MKSVR else model.decision_function
    assert np.ptp(decide(X[["a", "b"]] + shift)) == 0.0


@pytest.mark.parametrize("shift", [0.0, 1e3, *slow(1e5, 1e6)])
@pytest.mark.parametrize("C", [1.0, 1e5])
@pytest.mark.parametrize("estimator", [MKFDA, *slow(MKSVC, MKSVR)])
def test_a_model_of_far_data_is_as_good_as_of_near_data_or_warns(estimator, C, shift):
    rng = np.random.default_rng(0)
    near = rng.standard_normal((80, 3))
    target = near @ [1.0, 2.0, 3.0] + 0.1 * rng.standard_normal(80)
    parameters = {"reg": 1.0 / C} if estimator is MKFDA else {"C": C}
    if estimator is not MKSVR:
        target = target > 0
    far = [("lin", Linear()), ("one", Linear().on([0]))]

    def fitted(data):
        model = estimator(far, p=1, **parameters).fit(data, target)
        return model.score(data, target)

    expected = fitted(near)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            score = fitted(near + shift)
        except NotPositiveDefiniteError as error:
            assert "Raise reg" in str(error)  # noqa: PT017
            score = expected
    assert caught or score == pytest.approx(expected, abs=0.02)


def test_streamed_kernels_are_looked_at_too():
    with pytest.warns(UserWarning, match=CONSTANT):
        MKFDA(KERNELS, solver="coordinate", p=2).fit(X, y)


def test_folds_inside_an_estimator_do_not_repeat_it():
    with pytest.warns(UserWarning, match=CONSTANT) as caught:
        MKFDACV(KERNELS, ps=[2], regs=[1.0]).fit(X, y)
    assert len(caught) == 1


def test_a_search_says_the_same_in_every_fold():
    with pytest.warns(UserWarning, match="Nothing can be learnt") as caught:
        GridSearchCV(MKFDA(KERNELS), {"reg": [0.1, 1.0]}, cv=3).fit(X, y)
    assert len({str(warning.message) for warning in caught}) == 1


def test_other_kernels_are_not_named():
    good = [("good", Linear()), ("wide", RBF(1e-6)), ("narrow", RBF(1e6))]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        MKFDA(good).fit(X, y)
        MKSVC(good).fit(X, y)
    assert caught == []


def test_which_kernels_have_no_variance():
    data = stack()
    assert data.without_variance().tolist() == [1, 2, 3]
    assert Center().fit_transform(data).without_variance().tolist() == [1, 2, 3]
    assert data[[0, 1], [0, 1]].without_variance().tolist() == [1, 2, 3]
    shifted = KernelStack.from_arrays(data.data + 7.0)
    assert shifted.without_variance().tolist() == [1, 2, 3]
    unknown = KernelStack.from_arrays(np.ones((1, 3, 3)), psd="ignore")
    assert unknown.without_variance().tolist() == []
