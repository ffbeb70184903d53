"""Damaged and foreign files: one kind of error, and a sentence."""

import copy
import io
import json
import os
import pickle
import struct
import tracemalloc
import zipfile

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

import manykernels as mk
from manykernels import ModelFileError
from manykernels.kernels import Cosine, Linear
from manykernels.persistence.plain import Block, Entries, Frame
from tests.estimators.registry import Y
from tests.persistence.archives import (
    DAMAGED_HEADERS,
    MODEL,
    OUTPUTS,
    Reducer,
    archive_of,
    listed,
    members_of,
    node,
    text,
    with_attribute,
)
from tests.persistence.cases import NEW, NEW_SPARSE, SPARSE, N
from tests.problems import slow

# -- damage ----------------------------------------------------------------------------------


def corrupted(content, rng):
    """One of the things that happen to files."""
    kind = rng.integers(5)
    data = bytearray(content)
    if kind == 0:
        data[rng.integers(len(data))] ^= 1 << rng.integers(8)
    elif kind == 1:
        start = rng.integers(len(data))
        data[start : start + rng.integers(1, 40)] = rng.bytes(rng.integers(1, 40))
    elif kind == 2:
        del data[rng.integers(len(data)) :]
    elif kind == 3:
        start = rng.integers(len(data))
        del data[start : start + rng.integers(1, 200)]
    else:
        # The directory is at the end.
        for _ in range(4):
            data[-int(rng.integers(1, 600))] = rng.integers(256)
    return bytes(data)


def fuzz(load, content, seed, times):
    rng = np.random.default_rng(seed)
    refused = 0
    for _ in range(times):
        damaged = corrupted(content, rng)
        try:
            model = load(damaged)
        except ModelFileError:
            refused += 1
        else:
            # Dates and attributes of members are no part of the model.
            assert_array_equal(model.decision_function(NEW), OUTPUTS)
    return refused


def test_damaged_files(load, content):
    assert fuzz(load, content, 0, 300) > 200


@pytest.mark.slow
def test_many_damaged_files(load, content):
    assert fuzz(load, content, 1, 2000) > 1500


def fuzz_tree(load, content, seed, times):
    """Damage behind the checksums: parts of the tree exchanged, dropped and changed."""
    rng = np.random.default_rng(seed)
    odd = [None, True, -1, 10**30, 1.5, "", "x", [], {}, [[]], {"__loader__": "ObjectNode"}]
    members = members_of(content)
    tree = members["schema.json"]
    refused = 0
    for _ in range(times):
        found = json.loads(tree)
        places = []

        def collect(value):
            keys = value if isinstance(value, dict) else range(len(value))
            for key in keys:
                places.append((value, key))  # noqa: B023
                if isinstance(value[key], dict | list):
                    collect(value[key])

        collect(found)
        holder, key = places[rng.integers(len(places))]
        other, other_key = places[rng.integers(len(places))]
        choice = rng.integers(3)
        if choice == 0:
            holder[key] = odd[rng.integers(len(odd))]
        elif choice == 1:
            holder[key] = json.loads(json.dumps(other[other_key]))
        else:
            del holder[key]
        members["schema.json"] = json.dumps(found).encode()
        try:
            load(archive_of(members.items(), zipfile.ZIP_STORED))
        except ModelFileError:
            refused += 1
    return refused


def test_forged_trees(load, content):
    assert fuzz_tree(load, content, 0, 150) > 75


@pytest.mark.slow
def test_many_forged_trees(load, content):
    assert fuzz_tree(load, content, 1, 1000) > 500


@pytest.mark.parametrize(
    "damaged",
    [b"", b"PK", b"no archive", b"PK\x05\x06" + bytes(18), pickle.dumps(MODEL), bytes(1000)],
    ids=["empty", "two bytes", "text", "no members", "pickle", "zeros"],
)
def test_other_files(load, damaged):
    with pytest.raises(ModelFileError, match=r"model.skops cannot be loaded: .*\.$"):
        load(damaged)


# -- archives --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["../up.npy", "/etc/x.npy", "a/b.npy", "c:x.npy", "x.py", "é.npy"]
)
def test_names_with_folders_are_refused(load, content, name):
    members = [*members_of(content).items(), (name, b"")]
    with pytest.raises(ModelFileError, match=r"it has a member .* which saved models do not have"):
        load(archive_of(members))


def test_members_that_come_twice_are_refused(load, content):
    members = list(members_of(content).items())
    with pytest.raises(ModelFileError, match=r"it has two members 'schema.json'"):
        load(archive_of([*members, ("schema.json", b"{}")]))


def test_members_that_nothing_refers_to_are_refused(load, content):
    members = [*members_of(content).items(), ("extra.npy", b"")]
    with pytest.raises(ModelFileError, match=r"its member 'extra.npy' is not used"):
        load(archive_of(members))


def test_bombs_are_refused_before_they_unpack(load, content):
    bomb = archive_of([*members_of(content).items(), ("1000.bin", bytes(2**24))])
    assert len(bomb) < 2**16
    with pytest.raises(ModelFileError, match=r"more than the limit .*max_bytes="):
        load(bomb, max_bytes=2**22)
    # One that lies about its size.
    size = struct.pack("<I", 2**24)
    assert bomb.count(size) == 2
    with pytest.raises(ModelFileError, match="damaged"):
        load(bomb.replace(size, struct.pack("<I", 100)), max_bytes=2**22)
    with pytest.raises(ModelFileError, match="more than the limit"):
        load(bomb, max_bytes=1)


def test_arrays_of_the_size_that_they_say(load, content):
    members = members_of(content)
    name = next(name for name in members if name.endswith(".npy"))
    for header in ("(1000000000000,)", "(-1,)"):
        stream = io.BytesIO()
        np.lib.format.write_array_header_1_0(
            stream, {"descr": "<f8", "fortran_order": False, "shape": (3,)}
        )
        forged = stream.getvalue().replace(b"(3,)", header.encode()) + bytes(24)
        with pytest.raises(ModelFileError, match=f"{name!r} is not an array"):
            load(archive_of({**members, name: forged}.items()))


@pytest.mark.parametrize("damage", DAMAGED_HEADERS)
def test_headers_that_python_cannot_parse(load, content, damage):
    members = members_of(content)
    name = next(name for name in members if b"'<f8'" in members[name])
    with pytest.raises(ModelFileError, match=f"{name!r} is not an array: its header is damaged"):
        load(archive_of({**members, name: damage(members[name])}.items()))


def test_arrays_of_objects_are_not_unpickled(load, content):
    members = members_of(content)
    name = next(name for name in members if name.endswith(".npy"))
    stream = io.BytesIO()
    array = np.empty(1, dtype=object)
    array[0] = Reducer()
    np.save(stream, array, allow_pickle=True)
    with pytest.raises(ModelFileError, match="Python objects"):
        load(archive_of({**members, name: stream.getvalue()}.items()))
    for member in (pickle.dumps(Reducer()), archive_of([("a.npy", stream.getvalue())])):
        with pytest.raises(ModelFileError, match="is not an array"):
            load(archive_of({**members, name: member}.items()))


def test_sparse_matrices_with_indices_outside_are_refused(load, tmp_path):
    model = mk.MKFDA({"flat": Linear(), "cosine": Cosine()}).fit(SPARSE, Y[:N])
    mk.save(model, tmp_path / "sparse.skops")
    members = members_of((tmp_path / "sparse.skops").read_bytes())
    (name,) = [name for name in members if name.endswith(".npz")]
    assert_array_equal(
        load(archive_of(members.items())).decision_function(NEW_SPARSE),
        model.decision_function(NEW_SPARSE),
    )
    inner = members_of(members[name])
    for part, change in (("indices.npy", 10**6), ("indptr.npy", -5)):
        array = np.load(io.BytesIO(inner[part]))
        array[-1] += change
        stream = io.BytesIO()
        np.save(stream, array)
        forged = archive_of({**inner, part: stream.getvalue()}.items())
        with pytest.raises(ModelFileError, match="is not a sparse matrix"):
            load(archive_of({**members, name: forged}.items()))
    bomb = archive_of([*inner.items(), ("bomb.npy", bytes(2**24))])
    with pytest.raises(ModelFileError, match="is not a sparse matrix: it would unpack"):
        load(archive_of({**members, name: bomb}.items()), max_bytes=2**22)
    assert sparse.issparse(model.X_fit_)


# -- memory: far more than the file is long, and less than the limit of the directory ---------


def with_long_list(tmp_path, entries):
    """A model with a list of texts, in the place of which there is other JSON."""
    model = copy.copy(MODEL)
    model.names = [f"name {number}" for number in range(40)]
    mk.save(model, tmp_path / "listed.skops")
    members = members_of((tmp_path / "listed.skops").read_bytes())
    (name,) = [name for name, content in members.items() if b'"name 0","name 1"' in content]
    members[name] = member(np.frombuffer(entries, np.uint8))
    return archive_of(members.items())


def member(array):
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def assert_refused_in_little_memory(load, content):
    assert len(content) < 2**20
    tracemalloc.start()
    with pytest.raises(ModelFileError, match=r"more than the limit of 0.0625 GiB; .*max_bytes="):
        load(content)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**27


@pytest.mark.parametrize("entry", [b"0,", b"[],", *slow(b'"ab",')])
def test_long_lists(load, tmp_path, entry):
    long = b"[" + entry * 2_000_000 + b"0]"
    assert_refused_in_little_memory(load, with_long_list(tmp_path, long))


def test_long_trees(load, content):
    members = members_of(content)
    members["schema.json"] = b'{"content":[' + b"[]," * 2_000_000 + b"0]}"
    assert_refused_in_little_memory(load, archive_of(members.items()))
    long = text(None) | {"content": "[" + "0," * 2_000_000 + "0]"}
    assert_refused_in_little_memory(load, with_attribute(content, long))


def test_an_array_that_many_nodes_refer_to(load, content):
    nodes = [
        node("NdArrayNode", "numpy.ndarray", 91_000 + number, type="numpy", file="many.npy")
        for number in range(100)
    ]
    members = members_of(with_attribute(content, listed(*nodes)))
    members["many.npy"] = member(np.zeros(100_000))
    assert_refused_in_little_memory(load, archive_of(members.items()))


def test_many_lists_of_one_text(load, tmp_path):
    model = copy.copy(MODEL)
    text = np.frombuffer(b"[" + b"0," * 100_000 + b"0]", np.uint8)
    model.names = [Entries(text) for _ in range(20)]
    mk.save(model, tmp_path / "listed.skops")
    members = members_of((tmp_path / "listed.skops").read_bytes())
    assert_refused_in_little_memory(load, archive_of(members.items()))


def test_many_columns_without_rows(load, tmp_path):
    model = copy.copy(MODEL)
    empty = Block(np.arange(0), np.zeros((0, 10**6)))
    model.frame = Frame("polars", (0, 10**6), Entries.of([]), None, [empty], [])
    mk.save(model, tmp_path / "columns.skops")
    members = members_of((tmp_path / "columns.skops").read_bytes())
    assert_refused_in_little_memory(load, archive_of(members.items()))


@pytest.mark.parametrize("kind", ["zeros", "texts", "sparse", *slow("frame")])
def test_what_is_saved_can_be_loaded_however_well_it_is_packed(tmp_path, monkeypatch, kind):
    """It is not compressed then. Here the limit is low, so that little is enough."""
    monkeypatch.setattr("manykernels.persistence.archive._LEAST_LIMIT", 2**10)
    model, n = copy.copy(MODEL), 40_000
    model.extra = {
        "zeros": np.zeros(10 * n),
        "texts": ["a"] * n,
        "sparse": sparse.csr_array((np.ones(n), (np.arange(n), np.zeros(n, int))), (n, 1)),
        "frame": pd.DataFrame({"a": ["x"] * n, "b": pd.Categorical(["x"] * n), "c": 0}),
    }[kind]
    path = tmp_path / "model.skops"
    mk.save(model, path)
    extra = mk.load(path).extra
    if kind == "sparse":
        assert (extra != model.extra).nnz == 0
    else:
        pd.testing.assert_frame_equal(pd.DataFrame(extra), pd.DataFrame(model.extra))
    with zipfile.ZipFile(path) as archive:
        assert {info.compress_type for info in archive.infolist()} == {zipfile.ZIP_STORED}


# -- versions --------------------------------------------------------------------------------


def with_header(content, **changes):
    members = members_of(content)
    header = json.loads(members["manykernels.json"])
    members["manykernels.json"] = json.dumps({**header, **changes}).encode()
    return archive_of(members.items())


def test_the_header(content):
    header = json.loads(members_of(content)["manykernels.json"])
    assert header["format"] == 1
    assert header["model"] == "manykernels.estimators.fda.MKFDA"
    assert header["manykernels"] == mk.__version__
    assert {"numpy", "python", "scikit-learn", "skops"} < set(header)


@pytest.mark.parametrize("number", [2, 99])
def test_newer_formats_are_refused(load, content, number):
    with pytest.raises(ModelFileError, match=f"format {number}, written by manykernels 7.0"):
        load(with_header(content, format=number, manykernels="7.0"))


@pytest.mark.parametrize("number", [0, -1, "1", 1.0, True, None, [1]])
def test_unknown_formats(load, content, number):
    with pytest.raises(ModelFileError, match=r"its format .* is invalid"):
        load(with_header(content, format=number))


def test_a_newer_version_warns_and_an_older_one_does_not(load, content):
    with pytest.warns(UserWarning, match=r"saved by manykernels 99.1"):
        model = load(with_header(content, manykernels="99.1"))
    assert_array_equal(model.decision_function(NEW), OUTPUTS)
    load(with_header(content, manykernels="0.0.1", numpy="1.0", python="2.7"))


def test_files_of_skops_alone_are_refused(load):
    import skops.io

    with pytest.raises(ModelFileError, match=r"it was not written by manykernels.save"):
        load(skops.io.dumps(MODEL))


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(OSError, match=r"directory|denied"):
        mk.load(tmp_path)
    assert os.listdir(tmp_path) == []
