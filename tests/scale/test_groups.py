"""Groups of samples on explicit features: as on kernels, in any container, with any sample."""

from __future__ import annotations

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from manykernels import MKFDA, MKFDACV, ExactFeatures, MKRidge, MKRidgeCV
from manykernels.kernels import Linear
from manykernels.scale.blocks import row_blocks
from manykernels.scale.sampling import Reservoir, first_rows

N_ROWS = 240
rng = np.random.default_rng(0)
GROUPS = rng.integers(0, 40, N_ROWS)
NAMES = np.array([f"p{group}" for group in GROUPS])
X = rng.standard_normal((N_ROWS, 3)) + rng.standard_normal((40, 3))[GROUPS]
Y = (X[:, 0] + rng.standard_normal(N_ROWS) > 0).astype(int)
VALUES = X @ [1.0, 2.0, 0.0] + rng.standard_normal(N_ROWS)
WEIGHTS = rng.uniform(0.5, 2.0, N_ROWS)
KERNELS = [("first", Linear().on([0, 1])), ("second", Linear().on([2]))]
FEATURES = {"approximation": ExactFeatures()}
GRID = {"ps": [2], "regs": [0.1, 10.0]}
SAMPLE = "manykernels.estimators.feature_data.SAMPLE_ROWS"


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["", "weighted"])
def test_features_are_kernels(weights):
    for kind, y in ((MKFDA, Y), (MKRidge, VALUES)):
        exact = kind(KERNELS, tol=1e-9).fit(X, y, weights, NAMES)
        model = kind(KERNELS, tol=1e-9, **FEATURES).fit(X, y, weights, NAMES)
        name = "left_out_log_proba_" if kind is MKFDA else "left_out_predictions_"
        assert_allclose(getattr(model, name), getattr(exact, name), atol=1e-6)
        assert_array_equal(model.groups_, exact.groups_)


@pytest.mark.parametrize("kind", [MKFDACV, MKRidgeCV])
def test_folds_have_whole_groups(kind):
    y = Y if kind is MKFDACV else VALUES
    model = kind(KERNELS, **GRID, **FEATURES).fit(X, y, groups=NAMES)
    assert model.n_splits_ == 5
    for group in np.unique(GROUPS):
        assert len(np.unique(model.test_fold_[group == GROUPS])) == 1


def frame_of_dask(n_chunks=4):
    return dd.from_pandas(pd.DataFrame(X, columns=list("abc")), npartitions=n_chunks)


CONTAINERS = {
    "array": lambda: (da.from_array(X, chunks=(70, 3)), da.from_array(VALUES, chunks=50), NAMES),
    "array, series": lambda: (da.from_array(X, chunks=(70, 3)), VALUES, pd.Series(NAMES)),
    "array, array": lambda: (
        da.from_array(X, chunks=(70, 3)),
        VALUES,
        da.from_array(GROUPS, chunks=33),
    ),
    "frame": lambda: (frame_of_dask(), VALUES, NAMES.tolist()),
    "frame, series": lambda: (
        frame_of_dask(),
        dd.from_pandas(pd.Series(VALUES), npartitions=4),
        dd.from_pandas(pd.Series(NAMES), npartitions=3),
    ),
}


@pytest.mark.parametrize("sample_rows", [4000, 100], ids=["all", "some"])
@pytest.mark.parametrize("container", CONTAINERS)
def test_rows_of_dask(container, sample_rows, monkeypatch):
    monkeypatch.setattr(SAMPLE, sample_rows)
    table, y, groups = CONTAINERS[container]()
    kernels = [("all", Linear())]
    for kind, options in ((MKRidge, {}), (MKRidgeCV, GRID)):
        # Numbers and names of groups sort differently.
        labels = GROUPS if isinstance(groups, da.Array) else NAMES
        expected = kind(kernels, **options, **FEATURES).fit(X, VALUES, groups=labels)
        model = kind(kernels, **options, **FEATURES).fit(table, y, groups=groups)
        assert_array_equal(model.left_out_rows_, expected.left_out_rows_)
        assert_allclose(model.left_out_predictions_, expected.left_out_predictions_, atol=1e-8)
        assert_array_equal(model.groups_, expected.groups_)


def test_a_series_beside_a_frame_is_matched_by_index():
    labels = [f"r{k}" for k in range(N_ROWS)]
    frame = pd.DataFrame(X, columns=list("abc"), index=labels)
    table = dd.from_pandas(frame, npartitions=3, sort=False)
    groups = pd.Series(NAMES, index=labels).sample(frac=1.0, random_state=0)
    model = MKRidge(Linear(), **FEATURES)
    expected = model.fit(X, VALUES, groups=NAMES).left_out_predictions_
    found = model.fit(table, VALUES, groups=groups).left_out_predictions_
    assert_allclose(found, expected, atol=1e-10)
    with pytest.raises(ValueError, match="the index of groups differs from the index of X"):
        model.fit(table, VALUES, groups=groups.rename(lambda label: label + "x"))


# -- more rows than the sample -------------------------------------------------------------------


@pytest.mark.parametrize("per_class", [None, 20])
@pytest.mark.parametrize("chunks", [None, 37])
def test_the_sample_has_whole_groups(per_class, chunks):
    units = first_rows(GROUPS)
    weight = np.where(np.arange(N_ROWS) % 11 == 0, 0.0, 1.0)
    table, y = X, np.where(GROUPS == 7, "rare", "common")
    if chunks is not None:
        table, y = da.from_array(X, chunks=(chunks, 3)), da.from_array(y, chunks=chunks)
    blocks = row_blocks(table, y if per_class else None, weight, block_size=16)
    sample, census = Reservoir(50, 0, per_class, units, whole=True).draw(blocks)
    assert census.n_counting == np.count_nonzero(weight)
    assert 50 <= len(sample) < N_ROWS
    drawn = np.isin(GROUPS, GROUPS[sample.rows]) & (weight > 0)
    assert_array_equal(sample.rows, np.flatnonzero(drawn))
    assert_allclose(sample.X, X[drawn])
    if per_class:
        assert "rare" in sample.y


def test_groups_of_a_sample_are_left_out_as_by_refits(monkeypatch):
    """Of all rows, also those that are not in the sample."""
    monkeypatch.setattr(SAMPLE, 60)
    options = {"reg": 0.7, "normalize": None, **FEATURES}
    model = MKRidge(Linear(), **options).fit(X, VALUES, groups=NAMES)
    rows = model.left_out_rows_
    assert 60 <= len(rows) < 120
    for group in np.unique(GROUPS[rows]):
        out = group == GROUPS
        fit = MKRidge(Linear(), reg=0.7, normalize=None).fit(X[~out], VALUES[~out])
        left_out = model.left_out_predictions_[GROUPS[rows] == group]
        assert_allclose(left_out, fit.predict(X[out]), rtol=1e-7)


@pytest.mark.parametrize("most_dealt", [10_000, 1], ids=["table", "hash"])
@pytest.mark.parametrize("in_memory", [True, False])
def test_folds_of_many_rows_have_whole_groups(monkeypatch, most_dealt, in_memory):
    monkeypatch.setattr(SAMPLE, 60)
    monkeypatch.setattr("manykernels.estimators.feature_data._MOST_DEALT", most_dealt)
    table = X if in_memory else da.from_array(X, chunks=(50, 3))
    model = MKFDACV(Linear(), **GRID, **FEATURES, cv=3).fit(table, Y, groups=NAMES)
    part = model._stream._accumulator.plan.parts(np.arange(N_ROWS))
    for group in np.unique(GROUPS):
        assert len(np.unique(part[group == GROUPS])) == 1
    sizes = np.bincount(part, minlength=3)[:3]
    assert sizes.min() > 0
    if most_dealt > 1:
        assert np.ptp(sizes) <= np.bincount(GROUPS).max()


def test_groups_that_are_too_large_for_the_sample_are_refused(monkeypatch):
    monkeypatch.setattr(SAMPLE, 60)
    groups = np.arange(N_ROWS) // 120
    monkeypatch.setattr("manykernels.estimators.feature_data._LARGEST_GROUP", 100)
    with pytest.raises(ValueError, match=r"Group 0 has 120 rows, and may have 100 at most"):
        MKRidge(Linear(), **FEATURES).fit(X, VALUES, groups=groups)
    monkeypatch.setattr(SAMPLE, N_ROWS)
    MKRidge(Linear(), **FEATURES).fit(X, VALUES, groups=groups)


def test_bad_groups_of_dask():
    table = da.from_array(X, chunks=(50, 3))
    model = MKFDACV(Linear(), **GRID, **FEATURES)
    for groups, message in (
        (NAMES[:-1], "groups has 239 labels, but X has 240 rows"),
        (np.zeros(N_ROWS), "All rows are of one group"),
        (np.where(GROUPS[3] == GROUPS, np.nan, GROUPS), "groups is nan at row"),
        ("patient", "pass the column itself"),
    ):
        with pytest.raises(ValueError, match=message):
            model.fit(table, Y, groups=groups)


def test_a_class_in_one_group(monkeypatch):
    table, y = da.from_array(X, chunks=(50, 3)), (GROUPS == 3).astype(int)
    model = MKFDACV(Linear(), **GRID, **FEATURES)
    for rows in (X, table):
        with pytest.raises(ValueError, match="Class 1 has rows of one group only, 'p3'"):
            model.fit(rows, y, groups=NAMES)
    monkeypatch.setattr(SAMPLE, 60)
    with pytest.raises(ValueError, match="Class 1 has rows of one group only, 'p3'"):
        model.fit(X, y, groups=NAMES)
    # Targets of dask are not all in memory.
    with pytest.raises(ValueError, match=r"leaves no training samples of \[1\]"):
        model.fit(table, da.from_array(y, chunks=50), groups=NAMES)


def test_no_rows_are_added_to_groups():
    model = MKFDA(Linear(), **FEATURES).fit(X, Y, groups=NAMES)
    with pytest.raises(ValueError, match="were fitted in groups, and partial_fit takes none"):
        model.partial_fit(X, Y)
    model.fit(X, Y).partial_fit(X, Y)
