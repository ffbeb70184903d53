"""Gates of whole estimators: certificates, histories, counters, warnings."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from manykernels import LocalizedSVR
from manykernels.gating import Sigmoid, Softmax
from manykernels.gating.descent import DescentOptions, GateLearning
from manykernels.gating.gates import as_gate
from manykernels.gating.objective import StationarityCertificate
from tests.gating.gated_problems import PROBLEMS, SAMPLES, Interrupted, X, machine_of


def learning_of(gate="softmax", n_init=1, **options):
    gate = clone(as_gate(gate)).set_params(n_init=n_init)
    return GateLearning("Estimator", gate, np.random.default_rng(0), DescentOptions(**options))


def learn(problems, observer=None, **how):
    machines = [machine_of(problem) for problem in problems]
    return learning_of(**how).learn(SAMPLES, machines, observer=observer)


# -- certificates ------------------------------------------------------------------------------

FLAT = StationarityCertificate(10.0, 1e-3, 1e-7, change=2e-3, tol=1e-2)


def test_certificates_say_what_they_prove():
    for certificate, status, words in [
        (FLAT, "stationary", "2.0e-03 of itself, within tol=0.01"),
        (replace(FLAT, change=0.5), "stopped", "5.0e-01 of itself, more than tol=0.01"),
        (replace(FLAT, change=0.5, interrupted=True), "interrupted", "more than tol=0.01"),
        (replace(FLAT, change=np.inf), "stopped", "No step was taken; "),
    ]:
        assert certificate.converged == (status == "stationary")
        assert certificate.status == status
        assert words in certificate.message
        assert "gradient norm is 1.0e-03" in certificate.message
        assert ("Raise max_iter" in certificate.message) == (status == "stopped")
        assert str(certificate) == f"{status}: {certificate.message}"
    assert "stationary point" in FLAT.claim


def test_joined_certificates_are_those_of_the_sum():
    steep = StationarityCertificate(-30.0, 4e-3, 2e-7, change=0.1, tol=1e-2, interrupted=True)
    joined = StationarityCertificate.joined([FLAT, steep])
    assert joined.objective == -20.0
    # The gradient of a sum in the parameters of all gates.
    assert joined.gradient_norm == pytest.approx(np.hypot(10 * 1e-3, 30 * 4e-3) / 20)
    assert joined.inner_gap == pytest.approx((10 * 1e-7 + 30 * 2e-7) / 20)
    assert (joined.change, joined.tol, joined.status) == (0.1, 1e-2, "interrupted")
    assert StationarityCertificate.joined([FLAT]) == FLAT


# -- results -----------------------------------------------------------------------------------


def test_one_gate():
    learnt = learn(["hinge"], n_init=3, tol=1e-3)
    found = learnt.attributes
    (restarts,) = learnt.restarts
    assert found["objective_"] == min(found["restart_objectives_"])
    assert found["objective_"] == found["history_"]["objective"][-1]
    assert found["certificate_"] == restarts.best.certificate
    assert found["n_iter_"] == restarts.best.n_iter == len(found["history_"]["objective"]) - 1
    assert found["n_inner_solves_"] >= found["history_"]["n_inner_solves"][-1]
    assert set(found["history_"]) == {"objective", "gradient_norm", "n_inner_solves"}
    assert found["finished_"]
    assert found["gating_coef_"]["weights"].shape == (3, 2)
    assert_allclose(learnt.dual, learnt.points[0].trained.dual)


def test_several_gates_are_joined():
    learnt = learn(PROBLEMS, tol=1e-3)
    found, history = learnt.attributes, learnt.history
    lengths = [restarts.best.n_iter + 1 for restarts in learnt.restarts]
    assert history["machine"] == np.repeat([0, 1, 2], lengths).tolist()
    assert {len(values) for values in history.values()} == {sum(lengths)}
    assert np.diff(history["n_inner_solves"]).min() >= 1
    assert history["n_inner_solves"][-1] <= found["n_inner_solves_"]
    assert found["n_iter_"] == max(lengths) - 1
    assert found["objective_"] == pytest.approx(sum(p.value for p in learnt.points))
    assert found["certificate_"].converged
    assert len(found["gating_coef_"]) == len(found["restart_objectives_"]) == 3
    assert learnt.dual.shape == (len(X), 3)
    assert learnt.biases.shape == (3,)


def test_gates_are_learnt_one_after_the_other():
    rng = np.random.default_rng(0)
    learnt = learn(["hinge", "one class"], n_init=2)
    for problem, restarts in zip(["hinge", "one class"], learnt.restarts, strict=True):
        alone = replace(learning_of(n_init=2), rng=rng).learn(SAMPLES, [machine_of(problem)])
        assert alone.attributes["objective_"] == restarts.best.point.value


def test_parameters_of_an_estimator():
    how = {"max_iter": 7, "quasi_newton": False, "penalty": 0.5}
    gate = Sigmoid(n_init=4, early_stopping=0, random_state=3, **how)
    learning = GateLearning.of(LocalizedSVR(gating=gate, tol=0.1))
    assert (learning.estimator, learning.gate) == ("LocalizedSVR", gate)
    assert learning.options == DescentOptions(0.1, 7, quasi_newton=False)
    assert (learning.penalty, learning.n_folds) == (0.5, 0)
    assert learning.rng.uniform() == np.random.RandomState(3).uniform()
    by_name = GateLearning.of(LocalizedSVR(gating="softmax"))
    assert isinstance(by_name.gate, Softmax)
    assert (by_name.penalty, by_name.n_folds) == (0.003, 3)
    assert by_name.options == DescentOptions()


# -- observers, interruptions, warnings --------------------------------------------------------


@pytest.mark.parametrize("gate", ["softmax", Sigmoid(scale=1e6)])
def test_the_number_of_points_is_bounded_beforehand(gate):
    seen = []
    how = {"gate": gate, "n_init": 2, "tol": 1e-9, "max_iter": 4}
    learn(["hinge", "one class"], seen.append, **how)
    assert 4 <= len(seen) <= learning_of(**how).max_progress(2) == 2 * (2 * 5 + 3)


def test_to_stop_leaves_later_gates_at_plain_weights():
    learnt = learn(PROBLEMS, lambda progress: progress.iteration == 2, n_init=5)
    assert [len(restarts.objectives) for restarts in learnt.restarts] == [1, 1, 1]
    assert [restarts.best.n_iter for restarts in learnt.restarts] == [2, 0, 0]
    with pytest.warns(ConvergenceWarning, match=r"by inf .* by an observer\)\. A callback asked"):
        learnt.warn()
    assert learnt.attributes["finished_"]


def test_an_interruption_leaves_later_gates_at_plain_weights():
    machines = [Interrupted(machine_of(), 4), machine_of("one class")]
    learnt = learning_of(n_init=5).learn(SAMPLES, machines)
    assert [len(restarts.objectives) for restarts in learnt.restarts] == [1, 1]
    with pytest.warns(
        ConvergenceWarning, match="Estimator was interrupted: .* unfinished"
    ) as told:
        learnt.warn()
    assert len(told) == 1
    assert not learnt.attributes["finished_"]
    assert learnt.certificate.status == "interrupted"
    # Three of the first machine, one of the second, and those of the plain weights.
    assert sum(restarts.n_inner_solves for restarts in learnt.restarts) == 4


def test_steps_that_do_not_suffice():
    learnt = learn(PROBLEMS, tol=1e-9, max_iter=2)
    message = r"Estimator stopped while .* > tol=1e-09 per step \(2 steps taken\)\. Raise max_iter"
    with pytest.warns(ConvergenceWarning, match=message):
        learnt.warn()
    assert learnt.certificate.status == "stopped"


def test_saturated_gates():
    learnt = learn(["hinge"], gate=Sigmoid(scale=1e6))
    with pytest.warns(ConvergenceWarning, match="saturated everywhere in 3 of the starts"):
        learnt.warn()


def test_nothing_to_warn_of(recwarn):
    learn(["hinge"], n_init=2).warn()
    assert not recwarn.list
