"""Groups of samples in every estimator: which take them, and what all of these do with them."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn import config_context
from sklearn.utils.metadata_routing import get_routing_for_object

import manykernels as mk
from tests.estimators.registry import N_TRAIN, TABLE, X, those

# Distinct labels that are neither numbers nor in the order of the rows.
DISTINCT = np.array([f"p{k}" for k in np.random.default_rng(1).permutation(N_TRAIN)])
# Pairs of rows, each with all that a fold needs: a group has rows of several classes.
PAIRS = np.arange(N_TRAIN) // 2


def takes_groups(entry):
    return "groups" in inspect.signature(entry.kind.fit).parameters


every_one_with_groups = those(takes_groups)
every_one_without = those(lambda entry: not takes_groups(entry))


def made(entry):
    return entry.make(TABLE.kernels, **TABLE.params(entry))


@every_one_with_groups
def test_groups_of_single_rows_change_nothing(entry):
    plain, grouped = entry.fit(), made(entry).fit(X, entry.y, groups=DISTINCT)
    assert_allclose(
        entry.scores(grouped, TABLE.new), entry.scores(plain, TABLE.new), rtol=1e-12, atol=1e-12
    )
    for name in ("left_out_predictions_", "left_out_log_proba_", "left_out_decisions_"):
        if hasattr(plain, name):
            assert_allclose(getattr(grouped, name), getattr(plain, name), rtol=1e-12, atol=1e-12)


@every_one_with_groups
def test_no_group_is_divided(entry):
    model = made(entry).fit(X, entry.y, groups=PAIRS)
    np.testing.assert_array_equal(model.groups_, PAIRS)
    models = getattr(model, "estimators_", [getattr(model, "estimator_", model)])
    for judged in models:
        if hasattr(judged, "test_fold_"):
            folds = judged.test_fold_.reshape(-1, 2)
            np.testing.assert_array_equal(folds[:, 0], folds[:, 1])


@every_one_with_groups
def test_groups_can_be_asked_for(entry):
    with config_context(enable_metadata_routing=True):
        asks = made(entry).set_fit_request(groups=True)
        assert get_routing_for_object(asks).consumes("fit", ["groups"]) == {"groups"}


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (np.zeros(N_TRAIN), "All rows are of one group, 0.0"),
        (PAIRS[:-1], f"groups has {N_TRAIN - 1} labels, but X has {N_TRAIN} rows"),
        (np.where(PAIRS == 3, np.nan, PAIRS), "groups is nan at row 6"),
        ("patient", "must have the label of a group for every row of X, got 'patient'"),
        (np.column_stack([PAIRS, PAIRS]), "one label for every row"),
    ],
)
@those(takes_groups, waiting=lambda entry: entry.kind not in (mk.MKFDACV, mk.MKRidge))
def test_bad_groups_change_nothing(entry, groups, message):
    model = made(entry)
    before = dict(vars(model))
    with pytest.raises(ValueError, match=message):
        model.fit(X, entry.y, groups=groups)
    assert vars(model) == before


@every_one_without
def test_others_refuse_groups(entry):
    with pytest.raises(TypeError, match=rf"{entry.name}.fit takes no groups"):
        made(entry).fit(X, entry.y, groups=PAIRS)
    assert "groups" not in inspect.getdoc(entry.kind.fit)
