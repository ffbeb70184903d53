"""MKSVC and MKSVCCV with one machine for all classes."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, PredefinedSplit

from manykernels import MKSVC, MKSVCCV
from manykernels.kernels import RBF
from manykernels.smo.multiclass import solve_multiclass
from tests.estimators.registry import PAIRS, X_TEST, X, Y, refused


def test_one_machine_for_all_classes_on_one_kernel():
    """The machine of its solver, on centred kernels."""
    model = MKSVC(RBF(0.3), multi_class="single", normalize=None, C=0.7, tol=1e-7).fit(X, Y)
    K = rbf_kernel(X, gamma=0.3)
    alone = solve_multiclass(K, Y, 0.7, n_classes=3, tol=1e-10)
    assert model.certificate_.primal == pytest.approx(alone.primal, rel=1e-6)
    expected = rbf_kernel(X_TEST, X, gamma=0.3) @ alone.d + alone.bias
    found = model.decision_function(X_TEST)
    # Scores are compared with each other: a constant that is added to all of them says nothing.
    np.testing.assert_allclose(
        found - found.mean(axis=1, keepdims=True),
        expected - expected.mean(axis=1, keepdims=True),
        atol=1e-3,
    )
    np.testing.assert_array_equal(model.predict(X_TEST), expected.argmax(axis=1))


def test_one_machine_for_two_classes_is_the_binary_one():
    one, other = (MKSVC(PAIRS, multi_class=kind).fit(X, Y == 0) for kind in ("single", "shared"))
    np.testing.assert_array_equal(one.decision_function(X_TEST), other.decision_function(X_TEST))


def test_what_does_not_go_with_one_machine():
    for kind in (MKSVC, MKSVCCV):
        with refused("multi_class=\"single\" does not go with loss='squared_hinge'"):
            kind(PAIRS, multi_class="single", loss="squared_hinge").fit(X, Y)
    with refused("solver='interleaved' works for support vector machines only"):
        MKSVC(PAIRS, multi_class="single", solver="interleaved").fit(X, Y)


@pytest.mark.parametrize("solver", ["newton", "analytic", "sip"])
def test_solvers_of_one_machine_agree(solver):
    model = MKSVC(PAIRS, multi_class="single", p=2, solver=solver, tol=1e-4).fit(X, Y)
    best = MKSVC(PAIRS, multi_class="single", p=2, tol=1e-7).fit(X, Y)
    assert model.certificate_.converged
    assert model.certificate_.primal <= best.certificate_.primal * (1 + 1e-4)
    assert model.certificate_.primal >= best.certificate_.dual * (1 - 1e-9)


def test_a_penalty_chosen_for_one_machine():
    model = MKSVCCV(PAIRS, multi_class="single", ps=[1, 2], Cs=[0.1, 1.0], cv=3).fit(X, Y)
    search = GridSearchCV(MKSVC(PAIRS, multi_class="single"), {"p": [1, 2], "C": [0.1, 1.0]}, cv=3)
    folds = PredefinedSplit(model.test_fold_)
    search.set_params(cv=folds).fit(X, Y)
    np.testing.assert_allclose(
        model.cv_results_["mean_test_score"], search.cv_results_["mean_test_score"], atol=0.03
    )
    assert model.predict_proba(X_TEST).shape == (len(X_TEST), 3)
