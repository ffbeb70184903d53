"""Several labels per sample: answers of the models of all labels, side by side."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_multilabel_classification
from sklearn.exceptions import NotFittedError

from manykernels import MKFDACV

X, Y = make_multilabel_classification(60, 5, n_classes=3, random_state=0)


def test_log_probabilities_are_finite_where_probabilities_underflow():
    model = MKFDACV(ps=[2], regs=[1.0]).fit(X, Y)
    np.testing.assert_allclose(model.predict_log_proba(X), np.log(model.predict_proba(X)))
    model.estimators_[0].intercept_ = model.estimators_[0].intercept_ - 1e4
    assert (model.predict_proba(X)[:, 0] == 0.0).all()
    assert np.isfinite(model.predict_log_proba(X)).all()


class Recorder:
    """A callback that notes how often it is set up, and the depth of the tasks it is told of."""

    def __init__(self):
        self.calls, self.depths = [], []

    def setup(self, estimator, context):
        self.calls.append("setup")

    def teardown(self, estimator, context):
        self.calls.append("teardown")

    def on_fit_task_begin(self, estimator, context, **given):
        depth = 0
        while context.parent is not None:
            context, depth = context.parent, depth + 1
        self.depths.append(depth)

    def on_fit_task_end(self, estimator, context, **given):
        return False


class PropagatedRecorder(Recorder):
    """One that scikit-learn passes on to the models of labels, as a progress bar."""

    max_propagation_depth = None


@pytest.mark.parametrize(
    ("kind", "deepest"),
    [(Recorder, 1), pytest.param(PropagatedRecorder, 3, marks=pytest.mark.slow)],
)
def test_callbacks_are_set_up_once_for_all_labels(kind, deepest):
    recorder = kind()
    model = MKFDACV(ps=[2], regs=[1.0]).set_callbacks(recorder).fit(X, Y)
    assert recorder.calls == ["setup", "teardown"]
    assert recorder.depths.count(0) == 1
    assert max(recorder.depths) == deepest
    assert not any(hasattr(label, "_skl_callbacks") for label in model.estimators_)


def test_validation_curves_of_all_labels():
    model = MKFDACV(ps=[1, 2], regs=[0.1, 1.0, 10.0])
    with pytest.raises(NotFittedError):
        model.validation_curve()
    curves = model.fit(X, Y).validation_curve()
    assert curves.shape == (3, 2, 3)
    np.testing.assert_array_equal(curves[1], model.estimators_[1].validation_curve())


def test_weights_are_checked_before_kernels_are_computed():
    weights = np.ones(len(X))
    weights[3] = np.nan
    with pytest.raises(ValueError, match=r"^Input sample_weight contains NaN"):
        MKFDACV().fit(X, Y, weights)
