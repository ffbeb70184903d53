"""A model that was saved and loaded is the same model: answers, parameters, certificates."""

import pickle
import re
import zipfile
from functools import cache

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone

import manykernels as mk
from manykernels import KernelUnion
from manykernels.kernels import RBF, Linear
from tests.estimators.registry import (
    STACKED,
    TABLE,
    X_TEST,
    X,
    Y,
    every_variant_on_positive_kernels,
)
from tests.persistence.cases import CASES, FRAMES, NEW, POLARS, TRAIN
from tests.problems import slow

POSITIVE_PAIRS = [("shape", RBF(0.3)), ("noise", RBF(1.0))]
METHODS = ("decision_function", "predict", "predict_proba", "transform", "score_samples")


def twin_of(model, folder):
    mk.save(model, folder / "model.skops")
    return mk.load(folder / "model.skops")


def answers(model, data):
    return {name: getattr(model, name)(data) for name in METHODS if hasattr(model, name)}


def assert_same(found, known):
    """Equal in every part: types, arrays bit for bit, attributes."""
    assert type(found) is type(known)
    if isinstance(known, np.ndarray):
        assert found.dtype == known.dtype
        if known.dtype == object:
            assert_same(found.tolist(), known.tolist())
        else:
            assert_array_equal(found, known)
    elif isinstance(known, pd.DataFrame):
        pd.testing.assert_frame_equal(found, known)
    elif isinstance(known, dict):
        assert list(found) == list(known)
        for name in known:
            assert_same(found[name], known[name])
    elif isinstance(known, list | tuple):
        assert len(found) == len(known)
        for one, other in zip(found, known, strict=True):
            assert_same(one, other)
    elif hasattr(known, "equals"):
        assert found.equals(known)
    elif hasattr(known, "tocsr"):
        assert found.shape == known.shape
        assert (found != known).nnz == 0
    elif type(known).__module__.startswith(("manykernels", "sklearn")):
        assert_same(state(found), state(known))
    elif not isinstance(known, np.random.RandomState):
        assert found == known or (found != found and known != known)


def state(value):
    """Attributes, without what is made anew when it is needed, or is for fits only."""
    kept = value.__getstate__() or {}
    return {name: one for name, one in kept.items() if name not in ("_skl_callbacks", "_stream")}


# One of every kind of data; the others wait for the slow tests.
QUICK = {
    *(
        "default",
        "landmarks",
        "objects as labels",
        "sparse",
        "algebra",
        "pandas, one array",
    ),
    *("polars", "views of several kinds", "texts", "sequences", "stack", "row numbers"),
    *("missing views, conditional", "gate", "regions, given", "bands", "pipeline"),
}


def marked(names):
    return [pytest.param(name, marks=[pytest.mark.slow] * (name not in QUICK)) for name in names]


def described(model):
    """The representation of a model, without addresses of what has no better one."""
    return re.sub("0x[0-9a-fA-F]+", "", repr(model))


@cache
def fitted(name):
    return CASES[name].fitted()


@pytest.mark.parametrize("name", marked(CASES))
def test_every_kind_of_data(name, tmp_path):
    model, new = fitted(name), CASES[name].new
    twin = twin_of(model, tmp_path)
    assert twin is not model
    assert_same(answers(twin, new), answers(model, new))
    assert_same(twin, model)
    assert described(twin) == described(model)
    assert_same(sorted(twin.get_params()), sorted(model.get_params()))


@every_variant_on_positive_kernels
@pytest.mark.parametrize(
    "form", [TABLE, pytest.param(STACKED, marks=pytest.mark.slow)], ids=["table", "stack"]
)
def test_every_estimator(entry, form, tmp_path):
    if not entry.signed:
        union = KernelUnion(POSITIVE_PAIRS).fit(X)
        pairwise = {"table": POSITIVE_PAIRS, "stack": "precomputed"}[form.name]
        data = {"table": (X, X_TEST), "stack": (union(X), union(X_TEST, X))}[form.name]
        model, new = entry.make(pairwise).fit(data[0], entry.y), data[1]
    else:
        model, new = entry.fit(form), form.new
    twin = twin_of(model, tmp_path)
    assert_same(answers(twin, new), answers(model, new))
    assert_same(twin, model)
    assert repr(twin) == repr(model)
    assert twin.certificate_ == model.certificate_
    assert_same(getattr(twin, "history_", None), getattr(model, "history_", None))


@pytest.mark.parametrize("name", ["default", *slow("pandas, chosen", "gate")])
def test_equal_models_make_equal_files(name, tmp_path):
    first, second, again = (tmp_path / f"{place}.skops" for place in range(3))
    mk.save(fitted(name), first)
    twin = mk.load(first)
    answers(twin, CASES[name].new)  # what is kept for later answers is not stored
    mk.save(twin, second)
    mk.save(fitted(name), again)
    assert first.read_bytes() == second.read_bytes() == again.read_bytes()


def test_a_loaded_model_is_a_model(tmp_path):
    twin = twin_of(fitted("default"), tmp_path)
    known = fitted("default").decision_function(NEW)
    again = clone(twin).fit(TRAIN, Y[: len(TRAIN)])
    assert_array_equal(again.decision_function(NEW), known)
    assert_array_equal(pickle.loads(pickle.dumps(twin)).decision_function(NEW), known)
    assert_array_equal(twin.fit(TRAIN, Y[: len(TRAIN)]).decision_function(NEW), known)


def test_parts_that_were_shared_are_shared(tmp_path):
    twin = twin_of(fitted("pandas, chosen"), tmp_path)
    assert twin.X_fit_ is twin._predictor.source.table
    assert twin.union_ is twin._predictor.source.union


@pytest.mark.parametrize("frame", [FRAMES[0], FRAMES[1], FRAMES[0].reset_index(drop=True)])
def test_pandas_frames_come_back_with_all_types(frame, tmp_path):
    model = mk.MKFDA(RBF(columns=["a", "b"])).fit(frame, np.arange(len(frame)) % 2)
    found = twin_of(model, tmp_path).X_fit_
    pd.testing.assert_frame_equal(found, model.X_fit_, check_index_type="exact")
    assert type(found.index) is type(model.X_fit_.index)


def test_polars_frames_come_back_with_all_types(tmp_path):
    model = fitted("polars")
    found = twin_of(model, tmp_path).X_fit_
    assert found.schema == POLARS[0].schema
    assert found.equals(model.X_fit_)
    assert found["lost"].null_count() == 1


def many_columns(n_columns):
    """Columns of every type, those of one type not side by side."""
    rows = np.arange(12)
    makers = [
        lambda j: rows * 1.0 + j,
        lambda j: np.array([f"{row % 3}-{j}" for row in rows], dtype=object),
        lambda j: pd.array([f"{row % 3}-{j}" if row else None for row in rows], dtype="string"),
        lambda j: pd.Categorical([f"{row % (j % 5 + 1)}" for row in rows]),
        lambda j: pd.Categorical(rows % 4 + j, ordered=True),
        lambda j: pd.array([None, *range(j, j + 11)], dtype="Int16"),
        lambda j: np.array([None, True, 2, "x"] * 3, dtype=object),
    ]
    return pd.DataFrame({f"c{j}": makers[j % len(makers)](j) for j in range(n_columns)})


def many_polars_columns(n_columns):
    makers = [
        lambda j: pl.Series([f"{row % 3}-{j}" for row in range(12)]),
        lambda j: pl.Series([None, *range(j, j + 11)], dtype=pl.Int32),
        lambda j: pl.Series([str(row % 3) for row in range(12)], dtype=pl.Categorical),
        lambda j: pl.Series([1.0 * j] * 12),
    ]
    return pl.DataFrame({f"c{j}": makers[j % len(makers)](j) for j in range(n_columns)})


def test_many_columns_are_few_members(tmp_path):
    """Each member costs time in proportion to the number of members."""
    sizes = []
    for n_columns in (21, 210):
        model = mk.MKFDA(Linear()).fit(TRAIN, Y[: len(TRAIN)])
        model.frame, model.polars = many_columns(n_columns), many_polars_columns(n_columns)
        twin = twin_of(model, tmp_path)
        pd.testing.assert_frame_equal(twin.frame, model.frame)
        assert twin.polars.equals(model.polars)
        assert twin.polars.schema == model.polars.schema
        with zipfile.ZipFile(tmp_path / "model.skops") as archive:
            sizes.append(len(archive.namelist()))
    assert sizes[1] == sizes[0]


@pytest.mark.parametrize("kind", ["numbers", *slow("texts", "mixed")])
def test_models_of_many_columns_are_few_members(kind, tmp_path):
    sizes = []
    for n_columns in (80, 120):
        rng = np.random.default_rng(0)
        frame = pd.DataFrame(np.exp(rng.normal(size=(20, n_columns)))).add_prefix("c")
        texts = {"numbers": n_columns, "texts": 0, "mixed": n_columns // 2}[kind]
        for name in frame.columns[texts:]:
            frame[name] = np.array(["x", "y"])[(frame[name] > 1).astype(int)]
        model = mk.MKFDA().fit(frame, np.arange(20) % 2)
        twin = twin_of(model, tmp_path)
        assert_same(twin.union_, model.union_)
        with zipfile.ZipFile(tmp_path / "model.skops") as archive:
            sizes.append(len(archive.namelist()))
    assert sizes[1] == sizes[0]


def test_long_lists_of_arrays_come_back(tmp_path):
    makers = [
        lambda j: np.arange(j % 4),
        lambda j: np.array(["a", None, 3][: j % 4], dtype=object),
        lambda j: np.array(["abc"] * (j % 4)),
        lambda j: np.linspace(0, 1, j % 4, dtype=np.float32),
    ]
    model = mk.MKFDA(Linear()).fit(TRAIN, Y[: len(TRAIN)])
    model.arrays = [makers[j % 4](j // 4) for j in range(64)]
    model.shaped = [np.zeros((2, j)) for j in range(40)]
    twin = twin_of(model, tmp_path)
    assert_same(twin.arrays, model.arrays)
    assert_same(twin.shaped, model.shaped)
    assert all(array.base is None for array in twin.arrays)


@pytest.mark.parametrize(
    "index",
    [
        pd.RangeIndex(5, 5 + 2 * len(TRAIN), 2, name="row"),
        pd.DatetimeIndex(np.datetime64("2020-01-01", "s") + np.arange(len(TRAIN))),
        *slow(
            pd.Index([3, "three", 3.0, None, *range(4, len(TRAIN))], dtype=object),
            pd.Index(np.arange(len(TRAIN)) / 3),
            pd.CategoricalIndex(list("ab" * (len(TRAIN) // 2))),
        ),
    ],
    ids=lambda index: type(index).__name__,
)
def test_labels_of_rows_and_columns_come_back(index, tmp_path):
    frame = pd.DataFrame(TRAIN, index=index, columns=pd.Index(range(3, 8), name="number"))
    model = mk.MKFDA(RBF()).fit(frame, Y[: len(TRAIN)])
    found = twin_of(model, tmp_path).X_fit_
    pd.testing.assert_index_equal(found.index, model.X_fit_.index, exact=True)
    pd.testing.assert_index_equal(found.columns, model.X_fit_.columns, exact=True)


def test_keys_that_json_would_confuse_stay_apart(tmp_path):
    # Labels of classes need not be texts.
    y = np.array([1, 2, 3] * 10)
    model = mk.MKSVC(class_weight={1: 1.0, np.int64(2): 2.0, 3.0: 0.5}).fit(TRAIN, y)
    weights = twin_of(model, tmp_path).class_weight
    assert weights == model.class_weight
    assert list(map(type, weights)) == [int, np.int64, float]
    truths = mk.MKSVC(class_weight={True: 1.0, False: 2.0}).fit(TRAIN, y == 1)
    assert twin_of(truths, tmp_path).class_weight == {True: 1.0, False: 2.0}


def test_mapped_matrices_are_stored_with_their_values(tmp_path):
    stack = KernelUnion([("rbf", RBF()), ("flat", Linear())]).fit(TRAIN)(
        TRAIN, memmap=tmp_path / "stack.npy"
    )
    numbers = np.arange(len(TRAIN))[:, None]
    kernels = {name: mk.kernels.Precomputed(stack.kernel(name)) for name in stack.names}
    model = mk.MKSVC(kernels).fit(numbers, Y[: len(TRAIN)])
    twin = twin_of(model, tmp_path)
    (tmp_path / "stack.npy").unlink()
    assert_array_equal(twin.decision_function(numbers), model.decision_function(numbers))


def test_callbacks_are_not_stored(tmp_path):
    from sklearn.callback import ProgressBar

    model = fitted("default")
    watched = clone(model).set_callbacks(ProgressBar()).fit(TRAIN, Y[: len(TRAIN)])
    twin = twin_of(watched, tmp_path)
    assert "_skl_callbacks" in vars(watched)
    assert not [name for name in vars(twin) if name.startswith("_skl")]
    assert_array_equal(twin.decision_function(NEW), model.decision_function(NEW))


# -- sizes -----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("kind", [mk.MKFDA, mk.MKSVC])
def test_a_model_of_18_kernels_is_its_rows_and_coefficients(kind, tmp_path):
    assert_small(kind, 2000, tmp_path)


def test_a_small_model_is_its_rows_and_coefficients(tmp_path):
    assert_small(mk.MKFDA, 300, tmp_path)


def assert_small(kind, n_samples, folder):
    rng = np.random.default_rng(0)
    widths = {"fou": 76, "fac": 216, "kar": 64, "pix": 240, "zer": 47, "mor": 6}
    y = np.arange(n_samples) % 10
    tables = {
        name: rng.normal(size=(n_samples, width)) + y[:, None] * rng.normal(size=width)
        for name, width in widths.items()
    }
    kernels = [(f"rbf{w:g}", RBF("median", w)) for w in (0.5, 1.0, 2.0)]
    model = kind(kernels).fit(tables, y)
    assert len(model.kernel_names_) == 18
    mk.save(model, folder / "model.skops")
    # The largest thing in the file is a table: there is no matrix of all samples.
    with zipfile.ZipFile(folder / "model.skops") as archive:
        sizes = [info.file_size for info in archive.infolist()]
    assert max(sizes) <= tables["pix"].nbytes + 128
    # Of ten classes: coefficients of scores and of directions, the dual point and left-out
    # probabilities; and a centring vector for every kernel.
    rows = sum(table.nbytes for table in tables.values())
    coefficients = 8 * n_samples * (4 * 10 + 18)
    assert (folder / "model.skops").stat().st_size <= rows + coefficients


def test_no_rows_are_added_to_a_model_without_its_moments(tmp_path):
    model = fitted("landmarks")
    assert hasattr(model, "partial_fit")
    with pytest.raises(ValueError, match="has no moments of the rows"):
        twin_of(model, tmp_path).partial_fit(TRAIN, model.predict(TRAIN))
