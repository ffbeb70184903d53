"""Views: rows matched by label, cut by rows, brought into the order of training."""

from __future__ import annotations

import pickle
from types import SimpleNamespace

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.utils import _safe_indexing

from manykernels import Views
from manykernels.kernels import RBF, Linear
from manykernels.kernels.matching import matched_targets
from manykernels.kernels.views import are_views


@pytest.fixture
def frames():
    index = ["ann", "bob", "cas", "dan"]
    left = pd.DataFrame({"a": [1.0, 2.0, 3.0, 4.0], "b": [0.0, 1.0, 0.0, 1.0]}, index=index)
    right = pd.DataFrame({"c": [10.0, 20.0, 30.0, 40.0]}, index=index)
    return {"left": left, "right": right}


# -- matching rows -----------------------------------------------------------------------------


@given(seed=st.integers(0, 100))
@settings(max_examples=20, deadline=None)
def test_views_in_any_order_are_matched_by_label(seed):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 8))
    labels = rng.permutation([f"s{k}" for k in range(size)])
    values = pd.DataFrame({"x": rng.normal(size=size)}, index=labels)
    views = Views({"one": values, "two": values.iloc[rng.permutation(size)]})
    assert views.labels.tolist() == labels.tolist()
    np.testing.assert_array_equal(views["one"].to_numpy(), views["two"].to_numpy())
    rows = rng.integers(0, size, size=5)
    np.testing.assert_array_equal(views[rows]["two"]["x"], values["x"].iloc[rows])


def test_default_indices_are_labels_among_frames():
    left = pd.DataFrame({"a": np.arange(5.0)})
    views = Views({"left": left, "right": left.sample(frac=1, random_state=0)})
    np.testing.assert_array_equal(views["right"]["a"], left["a"])


def test_arrays_are_matched_by_position(frames):
    views = Views({**frames, "third": np.arange(4.0)})
    assert views.labels.tolist() == ["ann", "bob", "cas", "dan"]
    np.testing.assert_array_equal(views["third"], np.arange(4.0)[:, None])
    assert Views({"a": np.eye(3), "b": sparse.eye(3)}).labels is None


def test_arrays_beside_frames_in_different_orders_are_refused(frames):
    frames["right"] = frames["right"].iloc[::-1]
    with pytest.raises(ValueError, match="view 'third': its rows have no labels"):
        Views({**frames, "third": np.arange(4.0)})


def test_labels_that_differ_are_refused_with_names_and_counts(frames):
    frames["right"] = frames["right"].drop(index=["bob", "dan"])
    with pytest.raises(ValueError, match=r"'right' lacks 2 of 4 samples: 'bob', 'dan'.*join="):
        Views(frames)


def test_labels_without_overlap_are_refused(frames):
    frames["right"] = frames["right"].reset_index(drop=True)
    with pytest.raises(ValueError, match=r"no row labels in common: rows of 'left'.*0, 1"):
        Views(frames)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (str.upper, r"same but for upper and lower case: .*frame\.index\.str\.lower"),
        (lambda name: f"{name} ", r"look the same but for spaces: .*frame\.index\.str\.strip\(\)"),
        (
            lambda name: f"0{name}",
            r"same but for leading zeros: .*frame\.index\.str\.zfill\(4\)",
        ),
    ],
)
def test_labels_that_look_the_same(frames, change, said):
    frames["right"] = frames["right"].rename(index=change)
    for join in ("exact", "inner", "outer"):
        with pytest.raises(ValueError, match=said):
            Views(frames, join=join)


def test_labels_that_are_numbers_or_texts(frames):
    left = frames["left"].set_axis([5, 6, 7, 8])
    with pytest.raises(ValueError, match=r"being numbers or texts: .*frame\.index\.astype\(str\)"):
        Views({"left": left, "right": left.rename(index=str)})


def test_a_table_with_a_column_per_sample(frames):
    with pytest.raises(ValueError, match=r"columns of 'right' are rows of 'left': if it has a"):
        Views({**frames, "right": frames["right"].T})


def test_names_of_samples_that_are_no_index(frames):
    """Rows that are matched by position although a column tells otherwise."""
    left = frames["left"].rename_axis("name").reset_index()
    right = frames["right"].rename_axis("name").reset_index()
    for form in (lambda frame: frame, pl.from_pandas):
        with pytest.warns(UserWarning, match=r"column 'name' has the same .*set_index\('name'\)"):
            Views({"left": form(left), "right": form(right[::-1].reset_index(drop=True))})
        Views({"left": form(left), "right": form(left)})


def test_equal_labels_are_refused_if_rows_have_to_be_matched(frames):
    twice = frames["left"].rename(index={"bob": "ann"})
    assert len(Views({"left": twice, "same": twice})) == 4
    with pytest.raises(ValueError, match="'left' has several rows labelled 'ann'"):
        Views({"left": twice, "right": frames["right"]})


def test_joins(frames):
    frames["left"] = frames["left"].drop(index="ann")
    frames["right"] = frames["right"].drop(index="cas")
    inner = Views(frames, join="inner")
    assert inner.labels.tolist() == ["bob", "dan"]
    assert inner.present.all()
    outer = Views(frames, join="outer")
    assert outer.labels.tolist() == ["bob", "cas", "dan", "ann"]
    assert outer.present.tolist() == [[True, True], [True, False], [True, True], [False, True]]
    assert outer["right"]["c"].tolist() == [20.0, 40.0, 10.0]
    with pytest.raises(ValueError, match="join must be one of"):
        Views(frames, join="left")
    frames["right"] = frames["right"].rename(index=str.upper)
    with pytest.raises(ValueError, match="No sample is in all views"):
        Views(frames, join="inner")


def test_unequal_lengths_are_refused():
    with pytest.raises(ValueError, match="'b' has 4 rows, view 'a' has 3"):
        Views({"a": np.ones((3, 2)), "b": np.ones((4, 2))})


# -- what views are made of -------------------------------------------------------------------


def test_a_frame_with_two_levels_of_columns(frames):
    views = Views(pd.concat(frames, axis=1))
    assert views.names == ["left", "right"]
    pd.testing.assert_frame_equal(views["left"], frames["left"])


def test_a_frame_with_the_columns_of_each_view(frames):
    flat = pd.concat(frames.values(), axis=1)
    views = Views(flat, columns={"left": ["a", "b"], "right": "c"})
    pd.testing.assert_frame_equal(views["right"], frames["right"])
    with pytest.raises(ValueError, match=r"cannot be selected.*the columns 'a', 'b', 'c'"):
        Views(flat, columns={"left": ["a", "q"]})
    with pytest.raises(TypeError, match="two levels of names; this one has 1"):
        Views(flat)


def annotated(frame, **obsm):
    """What an AnnData looks like."""
    return SimpleNamespace(
        X=frame.to_numpy(),
        to_df=lambda: frame,
        obs_names=frame.index,
        var_names=frame.columns,
        obsm=obsm,
    )


def test_modalities(frames):
    right = frames["right"].iloc[::-1]
    multimodal = SimpleNamespace(mod={"l": annotated(frames["left"]), "r": annotated(right)})
    assert are_views(multimodal)
    views = Views(multimodal)
    assert views.names == ["l", "r"]
    assert views["r"]["c"].tolist() == [10.0, 20.0, 30.0, 40.0]
    single = annotated(frames["left"], pca=np.eye(4))
    views = Views(single)
    assert views.names == ["X", "pca"]
    assert views.labels.tolist() == list(frames["left"].index)
    single.X = sparse.csr_array(single.X)
    assert sparse.issparse(Views(single)["X"])


def with_layers(frame, **layers):
    """What an AnnData with layers looks like."""
    data = annotated(frame)
    data.layers = {None: data.X, **layers}
    data.to_df = lambda layer=None: pd.DataFrame(
        data.layers[layer], index=frame.index, columns=frame.columns
    )
    return data


def test_layers(frames):
    left, right = frames["left"], frames["right"]
    data = with_layers(left, counts=2.0 * left.to_numpy())
    views = Views(data, layer="counts")
    assert views.names == ["counts"]
    pd.testing.assert_frame_equal(views["counts"], 2.0 * left, check_dtype=False)
    data.layers["counts"] = sparse.csr_array(data.layers["counts"])
    assert sparse.issparse(Views(data, layer="counts")["counts"])
    assert Views(data, layer="counts").column_names("counts") == list(left.columns)
    for tables in ({"l": data, "r": with_layers(right)}, {"l": data, "r": right}):
        views = Views(tables, layer={"l": "counts"})
        assert sorted(views.names) == ["l/counts", "r"]
        pd.testing.assert_frame_equal(views["r"], right)
        assert sorted(Views(tables).names) == ["l", "r"]
    several = SimpleNamespace(mod={"l": data, "r": with_layers(right)})
    assert Views(several, layer={"l": "counts"}).names == ["l/counts", "r"]
    with pytest.raises(ValueError, match=r"modality 'r': there is no layer 'counts'"):
        Views(several, layer="counts")
    with pytest.raises(ValueError, match=r"there is no modality 'x'; modalities: l, r"):
        Views(several, layer={"x": "counts"})
    with pytest.raises(ValueError, match=r"there is no layer 'raw'; layers: 'counts'"):
        Views(data, layer="raw")
    with pytest.raises(TypeError, match="the name of a layer"):
        Views(data, layer={"l": "counts"})
    with pytest.raises(ValueError, match="layer is for AnnData and MuData"):
        Views(frames, layer="counts")
    data.obsm["counts"] = np.eye(4)
    with pytest.raises(ValueError, match="both a layer and an entry of obsm are called 'counts'"):
        Views(data, layer="counts")


def test_arrow_tables_and_frames_of_narwhals_are_the_frames_they_hold(frames):
    expected = Views(frames)
    for container in (pa.Table.from_pandas, nw.from_native):
        views = Views({name: container(frame) for name, frame in frames.items()})
        assert views.labels.tolist() == expected.labels.tolist()
        for name in frames:
            pd.testing.assert_frame_equal(views[name], expected[name])


def test_polars_series_and_objects():
    texts = ["to be", "or", "not"]
    views = Views(
        {
            "frame": pl.DataFrame({"a": [1.0, 2.0, 3.0]}),
            "series": pd.Series([1, 2, 3]),
            "texts": texts,
            "lists": [["a"], ["b", "c"], []],
            "words": np.array(texts),
        }
    )
    assert views["texts"].tolist() == views["words"].tolist() == texts
    assert views["lists"][1] == ["b", "c"]
    assert views[[2]]["frame"]["a"].to_list() == [3.0]
    assert repr(views) == (
        "Views(3 rows: 'frame' (1 column), 'series' (1 column), 'texts' (objects), 'lists' "
        "(objects), 'words' (objects))"
    )


class Tensor:
    """An array of another library: its rows are such arrays, too."""

    def __init__(self, values, device="cpu"):
        self.values, self.device = values, device

    def __array__(self, dtype=None, copy=None):
        if self.device != "cpu":
            raise TypeError("can't convert a tensor of a GPU; use Tensor.cpu() first.")
        return np.asarray(self.values, dtype=dtype)

    def __dlpack__(self, **options):
        return self.values.__dlpack__(**options)

    def __iter__(self):
        return (Tensor(row) for row in self.values)

    def __len__(self):
        return len(self.values)


def test_arrays_of_other_libraries_are_tables_without_a_copy():
    values = np.arange(8.0).reshape(4, 2)
    views = Views({"a": Tensor(values), "b": values})
    assert repr(views) == "Views(4 rows: 'a' (2 columns), 'b' (2 columns))"
    assert np.shares_memory(views["a"], values)
    with pytest.raises(TypeError, match=r"view 'a': can't convert .* use Tensor.cpu\(\) first"):
        Views({"a": Tensor(values, "gpu"), "b": values})


@pytest.mark.parametrize(
    ("tables", "match"),
    [
        ({}, "At least one view"),
        ({"a": None}, "view 'a': it is None"),
        ({"a": np.ones((2, 2, 2))}, r"view 'a'.*shape \(2, 2, 2\)"),
        ({"a": np.ones((2, 0))}, r"view 'a'.*0 feature\(s\)"),
        ({"a": pd.DataFrame(index=[1, 2])}, r"view 'a'.*0 feature\(s\)"),
        ({"a": np.ones((0, 2))}, r"0 sample\(s\): view 'a' has no rows"),
        ({"a": np.ma.masked_array([[1.0]], [[True]])}, "view 'a': it has a masked entry"),
    ],
)
def test_bad_tables_are_refused(tables, match):
    with pytest.raises(ValueError, match=match):
        Views(tables)


@pytest.mark.parametrize(
    ("tables", "match"), [([np.eye(2)], "got list"), ({1: np.eye(2)}, "got 1")]
)
def test_tables_without_names_are_refused(tables, match):
    with pytest.raises(TypeError, match=match):
        Views(tables)


# -- rows that lack a view --------------------------------------------------------------------


def test_rows_of_missing_values_lack_the_view(frames):
    frames["left"].loc["bob"] = np.nan
    frames["right"].loc["dan"] = np.nan
    frames["left"].loc["cas", "a"] = np.nan  # the row still has a "b"
    views = Views({**frames, "text": ["x", None, "y", "z"]})
    assert views.present.tolist() == [
        [True, True, True],
        [False, True, False],
        [True, True, True],
        [True, False, True],
    ]
    assert views["text"].tolist() == ["x", "y", "z"]
    taken = views[[3, 1, 1]]
    assert taken.present.tolist() == [
        [True, False, True],
        [False, True, False],
        [False, True, False],
    ]
    assert taken["right"]["c"].tolist() == [20.0, 20.0]
    with pytest.raises(ValueError, match=r"'left' is missing for 1 of 4 samples \('bob'\)"):
        views.refuse_lacking()
    with pytest.raises(ValueError, match="'bob' lacks view 'left'"):
        views.joined()


def test_missing_values_of_every_kind():
    missing = {
        "array": np.array([[np.nan, np.nan], [1.0, np.nan]]),
        "polars": pl.DataFrame({"a": [None, 1.0], "b": [None, None]}),
        "nullable": pd.DataFrame({"a": pd.array([pd.NA, 1], dtype="Int64")}),
        "dates": pd.DataFrame({"a": pd.to_datetime([None, "2020-01-01"])}),
        "objects": np.array([[None, np.nan], ["x", None]], dtype=object),
    }
    assert Views(missing).present.tolist() == [[False] * 5, [True] * 5]


def test_false_is_not_missing():
    rows = np.array([[False], [True], [np.False_], [None]], dtype=object)
    assert Views({"objects": rows}).present.ravel().tolist() == [True, True, True, False]


# -- a container for scikit-learn -----------------------------------------------------------------


def test_cutting(frames):
    views = Views(frames)
    assert views.shape == (4, 2)
    assert len(views) == 4
    for rows in ([2, 0], np.array([2, 0]), np.array([True, False, True, False]), slice(1, 3)):
        part = _safe_indexing(views, rows)
        expected = frames["left"].iloc[rows]
        assert part.labels.tolist() == expected.index.tolist()
        pd.testing.assert_frame_equal(part["left"], expected)
    assert views.take([1], axis=1).names == ["right"]
    with pytest.raises(TypeError, match="not an int"):
        views[0]
    with pytest.raises(KeyError, match="no view 'top'"):
        views["top"]


def test_it_is_a_mapping(frames):
    views = Views(frames)
    assert list(views) == views.keys() == ["left", "right"]
    assert "left" in views
    assert {**views}.keys() == frames.keys()
    assert Views(dict(views.items())).names == views.names


def test_it_does_not_become_an_array(frames):
    with pytest.raises(TypeError, match=r"several tables.*joined\(\)"):
        np.asarray(Views(frames))


def test_joined(frames):
    views = Views(frames)
    np.testing.assert_array_equal(views.joined(), pd.concat(frames.values(), axis=1))
    thin = Views({**frames, "s": sparse.eye(4)}).joined()
    assert sparse.issparse(thin)
    assert thin.shape == (4, 7)
    with pytest.raises(ValueError, match="view 'text'"):
        Views({"text": ["a", "b"]}).joined()


def test_copies_and_pickles(frames):
    views = Views(frames)
    for other in (views.copy(), pickle.loads(pickle.dumps(views))):
        other["left"].iloc[0, 0] = 99.0
        assert views["left"].iloc[0, 0] == 1.0


def test_a_view_is_set_as_permutation_importance_does_it(frames):
    views = Views(frames).copy()
    column = views.iloc[[3, 2, 1, 0], 1]
    column.index = views.index
    views[views.columns[1]] = column
    assert views["right"]["c"].tolist() == [40.0, 30.0, 20.0, 10.0]
    assert views["left"]["a"].tolist() == [1.0, 2.0, 3.0, 4.0]
    with pytest.raises(TypeError, match="Only a view of the same rows"):
        views["right"] = np.eye(4)
    with pytest.raises(ValueError, match="2 labels for 4 rows"):
        views.index = ["a", "b"]


# -- new samples ------------------------------------------------------------------------------


def test_new_views_take_the_order_of_training(frames):
    training = Views(frames)
    new = Views({"right": frames["right"], "left": frames["left"][["b", "a"]]}).like(training)
    assert new.names == ["left", "right"]
    assert list(new["left"].columns) == ["a", "b"]


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda v: {"left": v["left"]}, "X has no view 'right'.*missing="),
        (lambda v: {**v, "top": v["left"]}, "a view 'top' that training had not"),
        (lambda v: {**v, "left": v["left"][["a"]]}, "view 'left': it has no column 'b'"),
        (lambda v: {**v, "left": v["left"].assign(z=1)}, "view 'left': it has a column 'z'"),
        (lambda v: {**v, "left": np.ones((4, 3))}, "view 'left': it has 3 columns, but had 2"),
        (lambda v: {**v, "left": list("abcd")}, "view 'left': it is single objects"),
    ],
)
def test_other_views_than_in_training_are_named(frames, change, match):
    training = Views(frames)
    with pytest.raises(ValueError, match=match):
        Views(change(frames)).like(training)


def test_a_view_that_no_new_sample_has(frames):
    new = Views({"left": frames["left"]}).like(Views(frames), may_lack=True)
    assert new.present.tolist() == [[True, False]] * 4


# -- targets ------------------------------------------------------------------------------------


def matched_y(y, labels):
    """What `matched_targets` makes of y."""
    return matched_targets(labels, y=y)[0]


def test_targets_in_another_order_are_matched_by_label_with_a_warning():
    labels = np.array(["a", "b", "c"], dtype=object)
    y = pd.Series([2, 0, 1], index=["c", "a", "b"])
    with pytest.warns(UserWarning, match=r"rows of y have the labels of X in another order"):
        assert matched_y(y, labels).tolist() == [0, 1, 2]
    with pytest.warns(UserWarning, match="another order"):
        assert matched_y(y.to_frame(), labels)[0].tolist() == [0, 1, 2]
    with pytest.warns(
        UserWarning, match=r"y and sample_weight .* y.to_numpy\(\), sample_w"
    ) as told:
        matched_targets(labels, y=y, sample_weight=y / 2)
    assert len(told) == 1
    assert matched_targets(labels, y=y, quiet=True)[0].tolist() == [0, 1, 2]
    # Names of kernel stacks are texts.
    numbers = pd.Series([2, 0, 1], index=[30, 10, 20])
    with pytest.warns(UserWarning, match="another order"):
        assert matched_y(numbers, np.array(["10", "20", "30"])).tolist() == [0, 1, 2]


def test_targets_are_matched_by_position_without_common_labels():
    labels = np.array(["a", "b", "c"], dtype=object)
    y = pd.Series([2, 0, 1], index=["c", "a", "b"])
    in_order = y.loc[labels]
    for values, samples in (
        (in_order, labels),
        (pd.Series([5, 6, 7]), labels),
        (y, None),
        ([2, 0, 1], labels),
        (y, np.arange(3)),
        (pd.Series(range(3), index=[7, 7, 2]), np.array([7, 2, 7])),
        (pd.Series(range(3), index=list("cca")), np.array(list("cca"), dtype=object)),
    ):
        assert matched_y(values, samples) is values


def test_names_that_cannot_be_matched_are_refused():
    labels = np.array(["a", "b", "c"], dtype=object)
    y = pd.Series([2, 0, 1], index=["c", "a", "b"])
    match = r"of y \('A', 'B'\) and of X \('a', 'b'\) have none in common.*y\.to_numpy\(\)"
    with pytest.raises(ValueError, match=match):
        matched_y(pd.Series(range(3), index=list("ABC")), labels)
    for values, samples, repeated in (
        (pd.Series(range(3), index=list("cca")), labels, "c"),
        (y, np.array(["b", "a", "a"], dtype=object), "a"),
        (pd.Series(range(3), index=list("baa")), np.array(list("aba"), dtype=object), "a"),
    ):
        with pytest.raises(ValueError, match=rf"some are repeated, such as '{repeated}'"):
            matched_y(values, samples)


def test_targets_with_some_labels_of_others_are_refused_with_counts():
    labels = np.array(["a", "b", "c"], dtype=object)
    y = pd.Series([2, 0, 1], index=["c", "a", "b"])
    match = (
        r"1 of 3 labels of X are not in y: 'c'; 1 of 3 labels of y are not in X: 'q' \(2 are in"
    )
    with pytest.raises(ValueError, match=match):
        matched_y(y.rename(index={"c": "q"}), labels)
    with pytest.raises(ValueError, match="those of X: 1 of 4 labels of y are not in X: 'd'"):
        matched_y(pd.Series(range(4), index=list("abcd")), labels)
    with pytest.raises(ValueError, match=r"1 of 3 labels of X are not in y: 3.*y\.to_numpy\(\)"):
        matched_y(pd.Series(range(3)), pd.Index([3, 0, 1]))


def test_numbers_in_order_and_shuffled_are_ambiguous():
    in_order, shuffled = pd.Series([5, 6, 7]), pd.Series([7, 5, 6], index=[2, 0, 1])
    ways_out = r"y\.loc\[X\.index\].*y\.to_numpy\(\).*\.reset_index\(drop=True\)"
    with pytest.raises(ValueError, match=f"rows of X are numbered 0, 1, 2.*{ways_out}"):
        matched_y(shuffled, in_order.index)
    for labels in (shuffled.index, np.array(["2", "0", "1"])):
        with pytest.raises(ValueError, match=f"rows of y are numbered 0, 1, 2.*{ways_out}"):
            matched_y(in_order, labels)
    # Neither is numbered as pandas does it, so that both have labels.
    with pytest.warns(UserWarning, match="another order"):
        assert matched_y(shuffled, pd.Index([1, 2, 0])).tolist() == [6, 7, 5]


# -- kernels of a view ----------------------------------------------------------------------------


def test_a_kernel_of_a_view_is_the_kernel_of_its_table(frames):
    views = Views(frames)
    kernel = RBF().on(["a"]).of("left").fit(views)
    expected = RBF().on(["a"]).fit(frames["left"])
    np.testing.assert_array_equal(kernel(views), expected(frames["left"]))
    np.testing.assert_array_equal(
        kernel(views[:2], views), expected(frames["left"][:2], frames["left"])
    )
    np.testing.assert_array_equal(kernel.diag(views), np.ones(4))
    np.testing.assert_array_equal(RBF().of("left").on("a").fit(frames)(frames), kernel(views))


def test_rows_that_lack_the_view_have_no_similarity(frames):
    frames["left"].loc["bob"] = np.nan
    views = Views(frames)
    K = Linear().of("left").fit(views)(views)
    assert np.isnan(K[1]).all()
    assert np.isnan(K[:, 1]).all()
    known = frames["left"].drop(index="bob").to_numpy()
    np.testing.assert_allclose(K[np.ix_([0, 2, 3], [0, 2, 3])], known @ known.T)
    assert np.isnan(Linear().of("left").fit(views).diag(views)).tolist() == [
        False,
        True,
        False,
        False,
    ]


def test_kernels_of_views_name_what_is_wrong(frames):
    kernel = Linear().of("left").fit(frames)
    with pytest.raises(ValueError, match="no view 'left'; it has 'right'"):
        kernel({"right": frames["right"]})
    with pytest.raises(TypeError, match="view 'left': Linear compares one of several views"):
        kernel(np.eye(2))
    frames["right"]["c"] = "text"
    with pytest.raises(ValueError, match=r"view 'right': Linear.*column 'c'"):
        Linear().of("right").fit(frames)
    frames["left"][:] = np.nan
    with pytest.raises(ValueError, match="view 'left': no training sample has it"):
        Linear().of("left").fit(frames)


def test_an_outer_join_keeps_the_order_of_a_view_that_has_all_samples(frames):
    frames["left"] = frames["left"].drop(index=["ann", "cas"]).iloc[::-1]
    views = Views(frames, join="outer")
    assert views.labels.tolist() == ["ann", "bob", "cas", "dan"]
    assert views["left"]["a"].tolist() == [2.0, 4.0]


def test_an_empty_view_is_called_so(frames):
    with pytest.raises(ValueError, match="labelled 'ann', 'bob'; 'right' is empty"):
        Views({**frames, "right": frames["right"].iloc[:0]})


def test_lazy_frames_are_refused(frames):
    lazy = pl.LazyFrame({"a": [1.0, 2.0, 3.0, 4.0]})
    with pytest.raises(TypeError, match=r"view 'lazy': it is a lazy frame.*collect\(\)"):
        Views({**frames, "lazy": lazy})
