"""How every fit gets on: told to callbacks, printed, and why it ended early."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

from manykernels import MKFDA, MKSVC, MKSVR, rbf_grid
from manykernels.kernels import RBF, Linear
from manykernels.solvers import Newton
from tests.estimators import registry
from tests.estimators.registry import (
    ONE_OF_EACH,
    PAIRS,
    X_TEST,
    Recorder,
    every_localized,
    every_variant,
    those,
)

every_learner_of_weights = those(lambda entry: entry.has_p)

# -- callbacks -------------------------------------------------------------------------------


@every_learner_of_weights
def test_callbacks_hear_of_every_iteration(entry):
    recorder = Recorder()
    params = {"p": 1.5, "tol": 1e-8}
    listening = entry.make(PAIRS, **params).set_callbacks(recorder)
    listening.fit(registry.X, entry.y)
    assert listening.n_iter_ > 1
    begun, ended = (
        [task.task_name for task in tasks] for tasks in (recorder.begun, recorder.ended)
    )
    iterations = ended[:-1]
    assert len(iterations) == listening.n_iter_ == len(listening.history_["objective"])
    if not entry.separate:
        assert iterations == [f"iteration {k}" for k in range(listening.n_iter_)]
    assert begun == ["fit", *iterations]
    assert ended[-1] == "fit"
    assert recorder.calls == ["setup", "teardown"]
    assert_array_equal(listening.weights_, entry.fit(**params).weights_)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@every_learner_of_weights
def test_a_callback_can_stop_the_fit(entry):
    model = entry.make(PAIRS, p=1.5, tol=1e-12).set_callbacks(Recorder(stop_after=2))
    model.fit(registry.X, entry.y)
    # Every further class or target has a model of its own, which cannot be had for nothing.
    n_models = len(model.weights_) if entry.separate else 1
    assert model.n_iter_ == 1 + n_models
    assert not model.certificate_.converged
    assert np.isfinite(entry.scores(model, X_TEST)).all()
    if entry.target in ("two", "three"):
        assert model.score(registry.X, entry.y) > 0.8


# -- verbose ---------------------------------------------------------------------------------


@every_learner_of_weights
def test_verbose_prints_a_line_per_iteration(entry, capsys):
    model = entry.fit(p=1.5, verbose=True)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == model.n_iter_ > 1
    for k, (line, gap) in enumerate(zip(lines, model.history_["rel_gap"], strict=True)):
        assert line.startswith(f"[{entry.name}]")
        assert entry.separate or f"iteration {k:3d}" in line
        assert f"{gap:.2e}" in line


@every_localized
def test_verbose_prints_a_line_per_step(entry, capsys):
    model = entry.fit(verbose=True)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) >= model.n_iter_
    assert all(
        line.startswith((f"[{entry.name}] step", f"[{entry.name}] split")) for line in lines
    )
    assert entry.chooses == any(line.startswith(f"[{entry.name}] split") for line in lines)


@every_variant
def test_nothing_is_printed_unasked(entry, capsys):
    entry.fit()
    assert capsys.readouterr().out == ""


# -- fits that end early ---------------------------------------------------------------------

rng = np.random.default_rng(0)
X = rng.normal(size=(30, 3))
Y = np.arange(30) % 2
some_learners = those(lambda entry: entry.kind in (MKFDA, MKSVC, MKSVR), ONE_OF_EACH)


def warning_of(model, y=Y):
    with pytest.warns(ConvergenceWarning, match="stopped at relative gap") as caught:
        model.fit(X, y)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    return str(caught[0].message)


@those(lambda entry: entry.has_p, ONE_OF_EACH)
def test_stopping_early_warns_with_the_gap(entry):
    tol = 1e-9 if entry.name == "KimFDA" else 1e-14
    kernels = {"linear": Linear(), "rbf": RBF(), "narrow": RBF(5.0)}
    model = entry.make(p=1.1, max_iter=1, tol=tol).set_params(kernels=kernels)
    message = warning_of(model, entry.targets(Y))
    gap = model.certificate_.rel_gap
    assert gap > tol
    assert not model.certificate_.converged
    assert f"{entry.name} stopped at relative gap {gap:.2e} > tol={tol:g}" in message


@some_learners
@pytest.mark.parametrize("solver", ["newton", Newton()], ids=["name", "object"])
def test_newton_is_not_recommended_to_its_users(entry, solver):
    message = warning_of(entry.make(p=1.1, solver=solver, max_iter=1, tol=1e-14))
    assert message.endswith("max_iter=1 was reached: raise max_iter or tol.")


@some_learners
@pytest.mark.parametrize("solver", ["sip", "reduced-gradient"])
def test_newton_is_advised_to_others(entry, solver):
    kernels = [("linear", "linear"), *rbf_grid([0.25, 0.5, 1, 2, 4], gamma="scale").kernels]
    message = warning_of(entry.make(kernels, p=1, solver=solver, max_iter=1, tol=1e-6))
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


@some_learners
def test_a_solver_that_gives_up_is_not_short_of_iterations(entry):
    message = warning_of(entry.make(p=1.1, solver=GivesUp(), tol=1e-14))
    assert "No more progress was made, tol is less than can be had: raise tol" in message
    assert "max_iter" not in message


@some_learners
def test_a_callback_that_stops_a_fit_is_named(entry):
    model = entry.make(p=1.1).set_callbacks(Recorder(stop_after=1))
    assert warning_of(model).endswith("A callback asked for it.")


class StopOnce(Recorder):
    """Stops the first of several machines."""

    def on_fit_task_end(self, estimator, context, **given):
        super().on_fit_task_end(estimator, context)
        return len(self.ended) == 1


def test_a_callback_that_stops_one_of_several_machines_is_named():
    model = MKSVC(p=1.1, multi_class="separate").set_callbacks(StopOnce())
    assert warning_of(model, np.arange(30) % 3).endswith("A callback asked for it.")


def test_inside_a_search_the_warning_points_at_the_search():
    search = GridSearchCV(MKSVC(max_iter=1, tol=1e-14), {"p": [1.1]}, cv=2, refit=False)
    with pytest.warns(ConvergenceWarning, match="max_iter=1 was reached") as caught:
        search.fit(X, Y)
    assert {warning.filename for warning in caught} == {__file__}
