"""Several labels per sample: answers of the models of all labels, side by side."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import make_multilabel_classification

from manykernels import MKFDACV

X, Y = make_multilabel_classification(60, 5, n_classes=3, random_state=0)


def test_log_probabilities_are_finite_where_probabilities_underflow():
    model = MKFDACV(ps=[2], regs=[1.0]).fit(X, Y)
    np.testing.assert_allclose(model.predict_log_proba(X), np.log(model.predict_proba(X)))
    model.estimators_[0].intercept_ = model.estimators_[0].intercept_ - 1e4
    assert (model.predict_proba(X)[:, 0] == 0.0).all()
    assert np.isfinite(model.predict_log_proba(X)).all()
