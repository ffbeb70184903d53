"""A fit that ends early says why, and does not advise what is already done."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

from manykernels import MKFDA, MKSVC, MKSVR
from manykernels.solvers import Newton

rng = np.random.default_rng(0)
X = rng.normal(size=(30, 3))
Y = np.arange(30) % 2
KINDS = [MKFDA, MKSVC, MKSVR]


def warning_of(model, y=Y):
    with pytest.warns(ConvergenceWarning, match="stopped at relative gap") as caught:
        model.fit(X, y)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    return str(caught[0].message)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("solver", ["newton", Newton()], ids=["name", "object"])
def test_newton_is_not_advised_to_who_uses_it(kind, solver):
    message = warning_of(kind(p=1.1, solver=solver, max_iter=1, tol=1e-14))
    assert message.endswith("max_iter=1 was reached: raise max_iter or tol.")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("solver", ["sip", "reduced-gradient"])
def test_newton_is_advised_to_others(kind, solver):
    message = warning_of(kind(p=1, solver=solver, max_iter=1, tol=1e-6))
    assert message.endswith("was reached: raise max_iter or tol, or use solver='newton'.")


def test_several_machines_have_a_limit_each():
    y = np.arange(30) % 3
    model = MKSVC(p=1.1, multi_class="separate", max_iter=1, tol=1e-14)
    assert "max_iter=1 was reached" in warning_of(model, y)


class GivesUp:
    """A solver that ends early, far below its most iterations."""

    def solve(self, loss, domain, *, tol, max_iter, observer):
        assert max_iter > 2
        return Newton().solve(loss, domain, tol=tol, max_iter=1, observer=observer)


@pytest.mark.parametrize("kind", KINDS)
def test_a_solver_that_gives_up_is_not_short_of_iterations(kind):
    message = warning_of(kind(p=1.1, solver=GivesUp(), tol=1e-14))
    assert "No more progress was made, tol is less than can be had: raise tol" in message
    assert "max_iter" not in message


class Stop:
    """Stops the first of several machines."""

    def __init__(self):
        self.stops = True

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context, **given):
        pass

    def on_fit_task_end(self, estimator, context, **given):
        stops, self.stops = self.stops, False
        return stops


@pytest.mark.parametrize("kind", KINDS)
def test_a_callback_that_stops_a_fit_is_named(kind):
    assert warning_of(kind(p=1.1).set_callbacks(Stop())).endswith("A callback asked for it.")


def test_a_callback_that_stops_one_of_several_machines_is_named():
    model = MKSVC(p=1.1, multi_class="separate").set_callbacks(Stop())
    assert warning_of(model, np.arange(30) % 3).endswith("A callback asked for it.")


def test_inside_a_search_the_warning_points_at_the_search():
    search = GridSearchCV(MKSVC(max_iter=1, tol=1e-14), {"p": [1.1]}, cv=2, refit=False)
    with pytest.warns(ConvergenceWarning, match="max_iter=1 was reached") as caught:
        search.fit(X, Y)
    assert {warning.filename for warning in caught} == {__file__}
