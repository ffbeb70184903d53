"""Intervals of falls cover what new samples would show, for models that are learnt."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import get_scorer

from manykernels import MKFDA, MKSVR, view_importance
from tests.inspection.problems import KERNEL, views_and_classes, views_and_numbers

FDA = MKFDA(KERNEL, p=1, reg=3.0)


def test_noise_may_be_worth_nothing_and_a_needed_view_may_not():
    needed, noise = 0, 0
    for seed in range(12):
        views, y = views_and_classes(80, seed)
        found = view_importance(FDA, views, y, scoring="neg_log_loss", n_resamples=0)
        low, high = found.fall_interval.T
        needed += low[0] > 0
        noise += low[2] <= 0 <= high[2]
    assert needed == 12
    assert noise >= 11


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "problem", "scoring"),
    [
        (FDA, views_and_classes, "accuracy"),
        (FDA, views_and_classes, "balanced_accuracy"),
        (FDA, views_and_classes, "roc_auc"),
        (FDA, views_and_classes, "neg_log_loss"),
        (MKSVR(KERNEL, p=1), views_and_numbers, "r2"),
    ],
)
def test_intervals_cover_the_falls_on_new_samples(model, problem, scoring):
    """At 95 %; with fifty problems fewer than 42 are unlikely even at 90 %."""
    covered = np.zeros(3)
    for seed in range(50):
        views, y = problem(100, seed)
        new, truth = problem(1000, 1000 + seed)
        found = view_importance(model, views, y, scoring=scoring, n_resamples=0)

        def score(names, views=views, y=y, new=new, truth=truth):
            fitted = model.fit({name: views[name] for name in names}, y)
            test = {name: new[name] for name in names}
            if scoring in ("balanced_accuracy", "roc_auc"):
                return get_scorer(scoring)(fitted, test, truth)
            if scoring != "neg_log_loss":
                return fitted.score(test, truth)
            return fitted.predict_log_proba(test)[np.arange(len(truth)), truth].mean()

        falls = [score(views) - score([other for other in views if other != v]) for v in views]
        covered += (found.fall_interval[:, 0] <= falls) & (falls <= found.fall_interval[:, 1])
    assert (covered >= 42).all()


@pytest.mark.slow
@pytest.mark.parametrize("p", [1, 2])
def test_intervals_of_weights_cover_the_mean_weight_of_other_samples(p):
    """At 95 %; with fifty problems fewer than 42 are unlikely even at 90 %."""
    found = [
        view_importance(MKFDA(KERNEL, p=p, reg=3.0), *views_and_classes(80, seed), n_resamples=20)
        for seed in range(50)
    ]
    mean = np.mean([one.weight for one in found], axis=0)
    covered = np.zeros(3)
    for one in found:
        low, high = one.weight_interval.T
        assert np.all((low <= one.weight) & (one.weight <= high))
        covered += (low <= mean) & (mean <= high)
    assert (covered >= 42).all()
