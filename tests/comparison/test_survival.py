"""compare: survival models by the concordance index."""

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sksurv.linear_model import CoxPHSurvivalAnalysis

from manykernels import MKCox, Views, compare
from manykernels.datasets import make_survival_views
from manykernels.kernels import Linear
from manykernels.metrics import concordance_index

VIEWS, Y, _ = make_survival_views(60, n_features=3, random_state=0)
COX = MKCox(Linear(), p=2, reg=10.0)


def test_scores_are_those_by_hand():
    splits = list(StratifiedKFold(3).split(Y["event"], Y["event"]))
    found = compare({"cox": COX}, VIEWS, Y, cv=splits)
    assert found.scorings == ["concordance_index"]
    for k, (train, test) in enumerate(splits):
        risk = COX.fit(VIEWS.take(train), Y[train]).predict(VIEWS.take(test))
        expected = concordance_index(Y["event"][test], Y["time"][test], risk)
        assert found.scores()[0, k] == pytest.approx(expected)
    low, high = found.intervals()[0]
    assert 0.0 <= low < found.means()[0] < high <= 1.0


def test_folds_have_events_in_equal_parts():
    found = compare({"cox": COX}, VIEWS, Y, cv=5)
    numbers = [int(Y["event"][test].sum()) for _, test in found.splits]
    assert max(numbers) - min(numbers) <= 1


def test_every_form_of_y_and_scorers_by_name(tmp_path):
    expected = compare({"cox": COX}, VIEWS, Y, cv=3).scores()
    for y in ((Y["event"], Y["time"]), pd.DataFrame(Y)):
        found = compare({"cox": COX}, VIEWS, y, cv=3, path=tmp_path)
        np.testing.assert_allclose(found.scores(), expected)
    assert len(list(tmp_path.rglob("*.json"))) == 3
    names = ["concordance_index_ipcw", "neg_integrated_brier_score", "partial_likelihood"]
    found = compare({"cox": COX}, VIEWS, Y, cv=2, scoring=names)
    assert found.scorings == names
    assert found.ranges["neg_integrated_brier_score"][1] == 0.0


def test_searches_pipelines_and_other_packages():
    joined = make_pipeline(FunctionTransformer(Views.joined), CoxPHSurvivalAnalysis(alpha=1.0))
    search = GridSearchCV(COX, {"reg": [1.0, 10.0]}, cv=2)
    found = compare({"search": search, "sksurv": joined}, VIEWS, Y, cv=2)
    assert np.isfinite(found.scores()).all()
    assert found.scorings == ["concordance_index"]
    found = compare({"search": search}, VIEWS, (Y["event"], Y["time"]), cv=2)
    assert np.isfinite(found.scores()).all()
