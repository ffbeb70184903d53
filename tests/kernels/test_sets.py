"""Kernels of sets of columns: the right columns, whatever their order, and honest messages."""

from __future__ import annotations

import gzip
import re
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import manykernels as mk
from manykernels import MKFDA, MKFDACV, MKRidge, Views, kernels_of_sets, report
from manykernels.datasets import read_gmt
from manykernels.kernels import RBF, Linear

N = 40
GENES = [f"G{number}" for number in range(12)]
SETS = {"first": GENES[:4], "second": GENES[2:7], "third": [GENES[9], GENES[0]]}


def genes(n_rows=N, seed=0):
    rng = np.random.default_rng(seed)
    values = rng.normal(3.0, rng.uniform(0.5, 5.0, len(GENES)), size=(n_rows, len(GENES)))
    return pd.DataFrame(values, [f"s{row}" for row in range(n_rows)], GENES)


def annotated(frame, dense=True, **obsm):
    """What an AnnData looks like."""
    values = frame.to_numpy() if dense else sparse.csr_matrix(frame.to_numpy())
    return SimpleNamespace(
        X=values,
        to_df=lambda: frame,
        obs_names=frame.index,
        var_names=frame.columns,
        obsm=obsm,
    )


@pytest.fixture(name="X")
def frame():
    return genes()


@pytest.fixture
def y(X):
    return X[SETS["first"]].sum(axis=1) > X[SETS["first"]].sum(axis=1).median()


def pairs_of(union):
    return dict(union.kernels)


# -- the kernel of a set is the kernel of its columns -----------------------------------------


def standardised(table):
    return (table - table.mean(axis=0)) / table.std(axis=0)


def test_linear_kernels_of_standardised_columns(X):
    stack = kernels_of_sets(X, SETS).fit(X)(X)
    assert stack.names == list(SETS)
    for j, names in enumerate(SETS.values()):
        Z = standardised(X[names].to_numpy())
        assert_allclose(stack.kernel(j), Z @ Z.T, rtol=1e-10, atol=1e-10)


@given(
    st.dictionaries(
        st.text("abc", min_size=1, max_size=4),
        st.lists(st.sampled_from(GENES), min_size=1, unique=True),
        min_size=1,
        max_size=5,
    ),
    st.randoms(use_true_random=False),
)
def test_any_sets_of_any_order(sets, random):
    X = genes(7)
    shuffled = random.sample(GENES, len(GENES))
    stack = kernels_of_sets(X, sets, RBF(0.1)).fit(X)(X[:3], X[shuffled])
    for j, names in enumerate(sets.values()):
        D = X[names].to_numpy()[:3, None] - X[names].to_numpy()[None]
        assert_allclose(stack.kernel(j), np.exp(-0.1 * (D**2).sum(axis=2)), rtol=1e-8, atol=1e-12)


def test_repeated_members_count_once(X):
    once, twice = (kernels_of_sets(X, {"a": names}) for names in (["G1"], ["G1", "G1"]))
    assert_array_equal(once.fit(X)(X).kernel(0), twice.fit(X)(X).kernel(0))


def test_the_kernel_may_be_chosen(X):
    kernels = pairs_of(kernels_of_sets(X, SETS, RBF("median")))
    assert all(isinstance(kernel, RBF) for kernel in kernels.values())
    assert kernels["third"].columns == ["G0", "G9"]
    gaps = X.copy()
    gaps.iloc[0, 0] = np.nan
    imputing = Linear().after(make_pipeline(SimpleImputer(), StandardScaler()))
    stack = kernels_of_sets(X, SETS, imputing).fit(gaps)(gaps)
    Z = gaps[SETS["first"]].fillna(gaps.mean()).to_numpy()
    assert_allclose(stack.kernel(0), standardised(Z) @ standardised(Z).T, rtol=1e-9, atol=1e-9)


def test_the_rest_are_columns_in_no_kernel(X):
    kernels = pairs_of(kernels_of_sets(X, SETS, rest=True))
    assert kernels["rest"].columns == ["G7", "G8", "G10", "G11"]
    with pytest.warns(UserWarning, match="1 of 3 sets is left out"):
        kernels = pairs_of(kernels_of_sets(X, SETS, rest=True, min_columns=3))
    assert list(kernels) == ["first", "second", "rest"]
    assert "G9" in kernels["rest"].columns
    assert "rest" not in pairs_of(kernels_of_sets(X, {"all": GENES}, rest=True))


def test_columns_of_arrays_are_positions(X):
    sets = {"a": [3, 1], "b": np.array([0])}
    for table in (X.to_numpy(), sparse.csr_array(X.to_numpy())):
        union = kernels_of_sets(table, sets, "linear").fit(table)
        assert pairs_of(union)["a"].columns == [1, 3]
        Z = X.to_numpy()[:, [1, 3]]
        assert_allclose(union(table).kernel(0), Z @ Z.T, rtol=1e-10)


def test_a_polars_frame(X):
    table = pl.from_pandas(X)
    stack = kernels_of_sets(table, SETS).fit(table)(table)
    expected = kernels_of_sets(X, SETS).fit(X)(X)
    assert_allclose(stack.data, expected.data, rtol=1e-10, atol=1e-10)


# -- sizes and names --------------------------------------------------------------------------


def test_bounds_of_the_number_of_columns(X):
    sets = {**SETS, "absent": ["A", "B"]}
    with pytest.warns(UserWarning, match="match no column") as caught:
        union = kernels_of_sets(X, sets, min_columns=3, max_columns=4)
    assert list(pairs_of(union)) == ["first"]
    (message,) = [str(warning.message) for warning in caught]
    assert message == (
        "2 of 10 names in the sets match no column of X, such as 'A', 'B'. Sets with such names: "
        "1 of 4, most in 'absent' (2 of 2). 3 of 4 sets are left out: 1 with no column in X "
        "('absent'), 1 with fewer columns in X than min_columns=3 ('third'), 1 with more columns "
        "in X than max_columns=4 ('second')."
    )
    with pytest.raises(ValueError, match=r"No set is left: 3 with fewer columns.*min_columns=9"):
        kernels_of_sets(X, SETS, min_columns=9)


@pytest.mark.parametrize(
    ("names", "hint"),
    [
        (["tp53", "brca1"], "2 of them would match in another case"),
        (["TP53.2", "BRCA1.11"], r"2 of them would match without versions such as '.12'"),
        (["tp53.2", "XYZ"], "1 of them would match in another case and without versions"),
    ],
)
def test_nothing_matches(names, hint):
    X = pd.DataFrame(np.eye(3), columns=["TP53.7", "BRCA1.1", "MYC.1"])
    X.columns = X.columns if "." in names[0] else ["TP53", "BRCA1", "MYC"]
    message = f"No name in the sets matches a column of X: the sets have '{names[0]}', "
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        kernels_of_sets(X, {"a": names})
    assert f"the columns are '{X.columns[0]}'" in str(caught.value)
    assert hint in str(caught.value)


def test_the_hint_names_what_would_match():
    X = pd.DataFrame(np.eye(3), columns=["TP53", "ENSG01.4", "MYC"])
    with pytest.warns(UserWarning, match="1 of them would match without versions") as caught:
        kernels_of_sets(X, {"a": ["MYC", "ENSG01.12", "other"], "b": ["TP53"]})
    assert "2 of 4 names in the sets match no column of X" in str(caught[0].message)
    assert "'a' (2 of 3)" in str(caught[0].message)


def test_names_but_no_columns_with_names(X):
    with pytest.raises(ValueError, match=r"its 12 columns have no names\. Pass a data frame"):
        kernels_of_sets(X.to_numpy(), SETS)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"sets": {}}, "sets is empty"),
        ({"sets": ["G1"]}, "sets must be a dict"),
        ({"sets": {"a": "G1"}}, "Set 'a' must be a list of column names, got 'G1'"),
        ({"sets": {"a": []}}, "Set 'a' is empty"),
        ({"sets": {3: ["G1"]}}, "Names of sets must be texts, got 3"),
        ({"sets": {"a__b": ["G1"]}}, "'a__b' of a set cannot name a kernel"),
        ({"sets": {"kernels": ["G1"]}}, "'kernels' of a set cannot name a kernel"),
        ({"sets": {"rest": ["G1"]}, "rest": True}, "A set is called 'rest'"),
        ({"kernel": RBF().on("G1")}, "kernel must not choose columns or views"),
        ({"kernel": RBF().of("rna")}, "kernel must not choose columns or views"),
        ({"min_columns": 0}, "min_columns must be an integer of at least 1, got 0"),
        ({"max_columns": 2.5}, "max_columns must be an integer of at least 1, got 2.5"),
        ({"min_columns": 5, "max_columns": 4}, "min_columns=5 is larger than max_columns=4"),
        ({"view": "rna"}, "X is one table without views"),
    ],
)
def test_bad_parameters(X, options, match):
    with pytest.raises((ValueError, TypeError), match=match):
        kernels_of_sets(X, **{"sets": SETS, **options})


def test_repeated_columns_are_refused(X):
    X.columns = ["G0", *GENES[:-1]]
    with pytest.raises(ValueError, match="X: several columns are called 'G0'"):
        kernels_of_sets(X, SETS)


# -- views ------------------------------------------------------------------------------------


def test_the_view_of_the_sets(X, y):
    data = {"clinic": np.arange(N, dtype=float)[:, None], "rna": X}
    with pytest.raises(ValueError, match="the views 'clinic', 'rna': say which one the sets"):
        kernels_of_sets(data, SETS)
    with pytest.raises(ValueError, match="view='dna', but X has no such view"):
        kernels_of_sets(data, SETS, view="dna")
    union = kernels_of_sets(data, SETS, view="rna")
    alone = kernels_of_sets(X, SETS).fit(X)(X)
    assert_allclose(union.fit(data)(data).data, alone.data)
    model = MKFDA({"rna": union, "clinic": None}, p=1).fit(Views(data), y)
    assert model.kernel_names_[:3] == ["rna:first", "rna:second", "rna:third"]
    assert any(name.startswith("clinic:") for name in model.kernel_names_)
    by_view = MKFDA({"rna": kernels_of_sets(X, SETS), "clinic": None}, p=1).fit(data, y)
    assert_allclose(model.weights_, by_view.weights_)


@pytest.mark.parametrize("dense", [True, False])
def test_names_of_variables(X, y, dense):
    single = annotated(X, dense, pca=np.ones((N, 1)))
    union = kernels_of_sets(single, SETS)
    model = MKFDA(union, p=1).fit(single, y)
    expected = MKFDA(kernels_of_sets(X, SETS), p=1).fit(X, y)
    assert model.kernel_names_ == list(SETS)
    assert_allclose(model.weights_, expected.weights_, rtol=1e-4, atol=1e-6)
    shuffled = annotated(X[GENES[::-1]], dense, pca=np.ones((N, 1)))
    assert_allclose(model.decision_function(shuffled), model.decision_function(single))
    lacking = annotated(X[GENES[1:]], dense, pca=np.ones((N, 1)))
    with pytest.raises(ValueError, match="view 'X' of X has no column 'G0', which kernel 'first'"):
        model.predict(lacking)
    several = SimpleNamespace(mod={"rna": annotated(X, dense), "atac": annotated(X, dense)})
    union = kernels_of_sets(several, SETS, view="atac")
    assert {kernel.view for kernel in pairs_of(union).values()} == {"atac"}
    with pytest.raises(ValueError, match="the views 'rna', 'atac'"):
        kernels_of_sets(several, SETS)


def test_repeated_names_of_variables(X):
    X = X.rename(columns={"G1": "G0"})
    with pytest.raises(ValueError, match="view 'X': several columns are called 'G0'"):
        kernels_of_sets(annotated(X, dense=False), SETS)


def test_names_of_sparse_columns_survive_what_views_go_through(X, tmp_path):
    views = Views(annotated(X, dense=False))
    copies = [views, views[3:9], views.copy(), views.take([0], axis=1)]
    copies.append(Views.stacked([views[:5], views[5:]], lambda tables: sparse.vstack(tables)))
    for other in copies:
        assert other.column_names("X") == GENES
    like = Views(annotated(X[GENES[::-1]], dense=False)).like(views)
    assert_array_equal(like["X"].todense(), X.to_numpy())
    assert like.column_names("X") == GENES
    mixed = Views({"X": X[GENES[::-1]]}).like(views)
    assert_array_equal(mixed["X"].to_numpy(), X.to_numpy())
    with pytest.raises(ValueError, match="view 'X': it has no column 'G0'"):
        Views(annotated(X[GENES[1:]], dense=False)).like(views)
    twice = annotated(X.rename(columns={"G1": "G0"}), dense=False)
    shuffled = annotated(X.rename(columns={"G1": "G0"})[["G2", "G0", *GENES[3:]]], dense=False)
    with pytest.raises(ValueError, match="view 'X': several columns are called 'G0'"):
        Views(shuffled).like(Views(twice))


# -- in estimators ----------------------------------------------------------------------------


def test_new_rows_are_matched_by_name(X, y):
    model = MKFDA(kernels_of_sets(X, SETS), p=1).fit(X, y)
    expected = model.decision_function(X)
    assert_array_equal(model.decision_function(X[GENES[::-1]]), expected)
    with pytest.raises(ValueError, match="Feature names unseen at fit time"):
        model.predict(X.assign(other=1.0))


def test_a_missing_column_is_named_with_its_set(X, y):
    model = MKFDA(kernels_of_sets(X, SETS), p=1).fit(X, y)
    message = (
        "X has no column 'G2', which kernel 'first' (and 1 more) compared in training; 2 of 12 "
        "columns are missing."
    )
    with pytest.raises(ValueError, match=re.escape(message)):
        model.predict(X.drop(columns=["G2", "G11"]))
    views = MKFDA(kernels_of_sets({"rna": X}, SETS), p=1).fit({"rna": X}, y)
    with pytest.raises(ValueError, match="view 'rna' of X has no column 'G9', which kernel 'thir"):
        views.predict({"rna": X.drop(columns="G9")})
    with pytest.raises(ValueError, match="view 'rna': it has no column 'G11'"):
        views.predict({"rna": X.drop(columns="G11")})


def test_kernels_of_all_columns_still_refuse_another_order(X, y):
    model = MKFDA("linear").fit(X, y)
    with pytest.raises(ValueError, match="must be in the same order"):
        model.predict(X[GENES[::-1]])


def test_clones_and_parameters(X, y):
    union = kernels_of_sets(X, SETS, RBF(0.1))
    model = clone(MKFDA(union, p=1))
    assert model.get_params()["kernels__second__gamma"] == 0.1
    model.set_params(kernels__second__gamma=0.5)
    assert pairs_of(model.kernels)["second"].gamma == 0.5
    assert pairs_of(union)["second"].gamma == 0.1


@pytest.mark.parametrize("of_view", [False, True])
def test_searches_and_files(X, y, tmp_path, of_view):
    data = {"rna": X} if of_view else X
    model = MKFDACV(kernels_of_sets(data, SETS, rest=True), ps=[1, 2], regs=[0.1, 1.0])
    model.fit(data, y)
    assert model.kernel_names_ == [*SETS, "rest"]
    mk.save(model, tmp_path / "model.skops")
    twin = mk.load(tmp_path / "model.skops")
    new = genes(5, seed=1)[GENES[::-1]]
    new = {"rna": new} if of_view else new
    assert_array_equal(twin.predict_proba(new), model.predict_proba(new))
    assert repr(twin.kernels) == repr(model.kernels)


def test_files_keep_names_of_sparse_columns(X, y, tmp_path):
    single = annotated(X, dense=False)
    model = MKRidge(kernels_of_sets(single, SETS)).fit(single, y.astype(float))
    mk.save(model, tmp_path / "model.skops")
    shuffled = annotated(X[GENES[::-1]], dense=False)
    twin = mk.load(tmp_path / "model.skops")
    assert_array_equal(twin.predict(shuffled), model.predict(single))


def test_importance_of_sets(X, y):
    model = MKFDA(kernels_of_sets(X, SETS), p=2)
    result = mk.view_importance(model, X, y, n_resamples=0)
    assert result.to_frame().index.tolist() == list(SETS)
    assert result.to_frame()["alone"].idxmax() == "first"
    pair = {"first or third": ["first", "third"]}
    assert mk.view_importance(model, X, y, views=pair, n_resamples=0).names == list(pair)


# -- in reports -------------------------------------------------------------------------------


def test_a_report_counts_columns_and_folds_sets():
    X = genes(30)
    rng = np.random.default_rng(0)
    sets = {f"set{j}": rng.choice(GENES, rng.integers(2, 8), replace=False) for j in range(30)}
    y = X["G0"] > X["G0"].median()
    for data in (X, {"rna": X}):
        model = MKFDA(kernels_of_sets(data, sets), p=2).fit(data, y)
        contents = report(model, data, y, importance=False)
        learnt = contents.data["learnt"]
        assert learnt["columns"][0] == {
            "title": "columns",
            "values": list(map(len, sets.values())),
        }
        assert learnt["views"] == list(sets)
        assert "5 more kernels" in contents.html
    importance = mk.view_importance(MKFDA(kernels_of_sets(X, sets)), X, y, n_resamples=0)
    page = report(model, importance=importance).html
    assert "5 more views" in page
    assert "The 25 views with the largest falls are drawn" in page
    plain = MKFDA("linear").fit(X, y)
    assert report(plain).data["learnt"]["columns"] == []


def test_a_diagram_of_many_kernels_is_short(X):
    union = kernels_of_sets(X, {f"set{j}": GENES[: 1 + j % 9] for j in range(60)})
    page = union._repr_html_()
    assert "set19" in page
    assert "set20" not in page
    assert "40 more kernels" in page


# -- GMT files --------------------------------------------------------------------------------


TEXT = "first\thttp://x\tG0\tG1\tG1\t\n\nsecond\t\tG2 \r\n"


@pytest.mark.parametrize("compressed", [False, True])
def test_reading(tmp_path, X, compressed):
    path = tmp_path / "sets.gmt"
    path.write_bytes(
        gzip.compress(TEXT.encode()) if compressed else b"\xef\xbb\xbf" + TEXT.encode()
    )
    assert read_gmt(path) == {"first": ["G0", "G1"], "second": ["G2"]}
    for given_path in (path, str(path)):
        assert list(pairs_of(kernels_of_sets(X, given_path))) == ["first", "second"]


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (b"", "sets.gmt is empty: it has no sets"),
        (b"\n \n", "sets.gmt is empty"),
        (b"a\tb\tG1\nfirst G0 G1\n", "line 2: a set must be a name.*got 'first G0 G1' without"),
        (b"a\tb\tG1\nc\td\n", "line 2: the set 'c' is empty"),
        (b"a\tb\t\t\n", "line 1: the set 'a' is empty"),
        (b"a\tb\tG1\n\nc\tb\tG1\na\tb\tG2\n", "line 4: the set of line 1 has the same name, 'a'"),
        (b"a\tb\tG1\n\tb\tG1\n", "line 2: the set has no name"),
        (b"a\tb\tG1\n\xff\xfe\x00", "line 2: this is not text"),
    ],
)
def test_bad_files(tmp_path, content, match):
    path = tmp_path / "sets.gmt"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=match):
        read_gmt(path)


def test_a_damaged_compressed_file(tmp_path):
    path = tmp_path / "sets.gmt.gz"
    path.write_bytes(gzip.compress(TEXT.encode())[:-9])
    with pytest.raises(ValueError, match=r"sets.gmt.gz, line \d: the compressed file is damaged"):
        read_gmt(path)


def test_no_file(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none\.gmt"):
        read_gmt(tmp_path / "none.gmt")
