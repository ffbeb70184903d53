"""Random bad input of a command: texts, tables, archives and models that are wrong in some way.

Each maker writes files into the working folder, if it needs any, and returns arguments. Whatever
could be executed would leave a file behind, ``CANARY``.
"""

from __future__ import annotations

import io
import json
import pickle
import zipfile
from pathlib import Path

import numpy as np

CANARY = Path("canary")
CALL = "__import__('pathlib').Path('canary').touch()"
FIT = ("fit", "--index", "id", "--target", "label", "--p", "2", "--reg", "1")
COX = (
    *("fit", "--view", "a=a.csv:x,y", "--index", "id", "--p", "2", "--reg", "1"),
    *("--time", "clinic.csv:months"),
)
OUTPUT = ("--output", "out.skops")
# What people, editors and attackers put where a name or a number belongs.
TEXTS = (
    *("", " ", ".", "..", "/", "\\", "-", "--", "=", ":", "::", ",", "a", "a=", "=a", "a==b"),
    *("'", '"', "`", "$(touch canary)", "; touch canary", "| touch canary", "%s", "{}", "\0"),
    *("../../etc/passwd", "/dev/null", "/dev/zero", "/", "C:\\a.csv", "~", "*", "a" * 3000),
    *("é", "数据", "\u202e", "\x1b[31mred\x1b[0m", "[red]rich[/red]", "\ud800", "NaN", "inf"),
    *("1e999", "-1", "0", "1,,2", "nan", "None", "True", "auto", CALL, f"rbf(gamma={CALL})"),
    *("rbf(gamma=0.5", "rbf)", "rbf()", "rbf(1)", "rbf(**{})", "rbf(gamma=[1])", "RBF(gama=1)"),
    *("rbf(gamma=" + "(" * 300, "rbf(gamma=-1)", "rbf(gamma='x')", "linear", "spectrum(k=0)"),
    *("a.csv:*", "b.csv:*e", "clinic.csv:[*", "*:*", "model.skops:*"),
    *("roc_auc", "r2", "accuracy,r2", "concordance_index", "case,number", "all", "0.9", "clip"),
    *("lambda: 0", "precomputed", "nystrom:0", "nystrom:x", "random:", "nystrom:-5", "exact"),
)
CELLS = (
    *("", "NA", "nan", "inf", "-inf", "1e400", "1e-400", "x", "é", "'", '"', '""', "\0", "\ufeff"),
    *(
        "=1+1",
        "1,5",
        "0x10",
        "1_000",
        "9" * 400,
        "2020-01-01",
        "true",
        "[b]",
        "\x1b[0m",
        "z" * 9999,
    ),
)


class Executed:
    """Unpickling it would run a command."""

    def __reduce__(self):
        return Path.touch, (CANARY,)


def pick(rng, options):
    return options[int(rng.integers(len(options)))]


def damaged(content, rng):
    """Bytes after one of the things that happen to files."""
    data = bytearray(content)
    kind = rng.integers(5)
    if kind == 0:
        for _ in range(int(rng.integers(1, 8))):
            data[int(rng.integers(len(data)))] ^= 1 << int(rng.integers(8))
    elif kind == 1:
        del data[int(rng.integers(len(data))) :]
    elif kind == 2:
        start = int(rng.integers(len(data)))
        data[start : start + int(rng.integers(1, 60))] = rng.bytes(int(rng.integers(60)))
    elif kind == 3:
        data = bytearray(rng.bytes(int(rng.integers(1, 500))))
    else:
        data += rng.bytes(int(rng.integers(1, 100)))
    return bytes(data)


# -- arguments -------------------------------------------------------------------------------


def odd_arguments(rng):
    """A good command with one argument exchanged, dropped or added."""
    command = pick(
        rng,
        (
            [*FIT, "--view", "a=a.csv", "--view", "b=b.csv", *OUTPUT],
            ["predict", "model.skops", "--view", "a=a_new.csv", "--view", "b=b_new.csv"],
            ["inspect", "model.skops", "--json"],
            ["fit", "--spec", "model.toml", *OUTPUT],
            ["compare", "--spec", "model.toml", "--folds", "2", "--methods", "sum"],
            ["importance", "--spec", "model.toml", "--resamples", "0"],
            ["importance", "model.skops", "--resamples", "0"],
            ["predict", "model.skops", "--view", "a=a_new.csv", "--encoding", "utf-8"],
            [*COX, "--event", "clinic.csv:died", *OUTPUT],
        ),
    )
    place = int(rng.integers(len(command)))
    kind = rng.integers(4)
    if kind == 0:
        return [*command[:place], pick(rng, TEXTS), *command[place + 1 :]]
    if kind == 1:
        return command[:place] + command[place + 1 :]
    option = pick(
        rng,
        (
            *("--view", "--index", "--target", "--missing", "--task", "--machine", "--p", "--reg"),
            *("--C", "--approximation", "--spec", "--output", "--report", "--predictions"),
            *("--time", "--event", "--at", "--groups", "--sets"),
            *("--encoding", "--transpose", "--match-ids", "--indefinite"),
            *("--scoring", "--strata", "--entry", "--coverage", "--columns"),
            *("--unknown", "-x", "--folds", "--methods", "--resamples", "--folder"),
        ),
    )
    return [*command, option, pick(rng, TEXTS)]


def odd_views(rng):
    """A view whose file, columns or kernel is odd."""
    parts = ["a.csv", pick(rng, ("x", "x,y", "label", "id", *TEXTS)), pick(rng, TEXTS)]
    text = f"{pick(rng, ('a', *TEXTS))}={':'.join(parts[: int(rng.integers(1, 4))])}"
    return [*FIT, "--view", text, *OUTPUT]


def odd_outputs(rng):
    """An output where none can be, or one that is there already."""
    path = pick(
        rng,
        (
            *("kept.skops", "a.csv", ".", "..", "nowhere/out.skops", "/dev/null", "out.txt"),
            *("../out/../../x/out.skops", "folder.skops", "model.toml", "out.skops/out.skops"),
        ),
    )
    option = pick(rng, ("--output", "--report", "--predictions"))
    return [*FIT, "--view", "a=a.csv", *OUTPUT, option, path]


# -- files -----------------------------------------------------------------------------------


def odd_tables(rng):
    """A table in which cells, lines or bytes are odd."""
    lines = Path("a.csv").read_text().splitlines()
    for _ in range(int(rng.integers(1, 4))):
        row = int(rng.integers(len(lines)))
        cells = lines[row].split(",")
        kind = rng.integers(5)
        if kind == 0:
            cells[int(rng.integers(len(cells)))] = pick(rng, CELLS)
        elif kind == 1:
            cells = cells[: int(rng.integers(len(cells)))]
        elif kind == 2:
            cells = cells * 2
        elif kind == 3:
            lines = lines[: max(row, 1)]
            continue
        else:
            cells = lines[int(rng.integers(len(lines)))].split(",")
        lines[row] = ",".join(cells)
    content = "\n".join(lines).encode("utf-8", "surrogatepass")
    content = damaged(content or b" ", rng) if rng.random() < 0.3 else content
    Path("odd.csv").write_bytes(content)
    options = pick(rng, ((), ("--impute",), ("--missing", "mean"), ("--task", "regression")))
    return [*FIT, "--view", "a=odd.csv", "--view", "b=b.csv", *options, *OUTPUT]


def odd_targets(rng):
    """A target that nobody could learn."""
    values = pick(rng, (["x"], [""], ["nan"], ["inf", "1.5"], ["a", "b", "c"] * 20, ["1", "x"]))
    values = values if rng.random() < 0.5 else [f"{value}{i}" for i, value in enumerate(values)]
    ids = [f"{number:03d}" for number in range(int(rng.integers(1, 40)))]
    rows = [f"{name},{values[i % len(values)]}" for i, name in enumerate(ids)]
    Path("odd.csv").write_text("\n".join(["id,label", *rows]))
    return ["fit", "--index", "id", "--target", "odd.csv:label", "--view", "b=b.csv", *OUTPUT]


def odd_survival(rng):
    """Events or times of which some are odd."""
    lines = Path("clinic.csv").read_text().splitlines()
    for _ in range(int(rng.integers(1, 4))):
        row, cell = int(rng.integers(1, len(lines))), int(rng.integers(1, 3))
        cells = lines[row].split(",")
        cells[cell] = pick(rng, (*CELLS, "-1", "0", "1", "2", "yes", "no", "True"))
        lines[row] = ",".join(cells)
    if rng.random() < 0.3:
        lines = lines[: int(rng.integers(1, 4))]
    Path("odd.csv").write_bytes("\n".join(lines).encode("utf-8", "surrogatepass"))
    event = pick(rng, ("died", "died=1", "died=yes", "months", *TEXTS))
    return [*COX[:-1], "odd.csv:months", "--event", f"odd.csv:{event}", *OUTPUT]


def odd_binaries(rng):
    """Bytes that are no file of this kind, or were one."""
    ending = pick(
        rng,
        (
            *("csv", "csv.gz", "csv.zst", "xlsx", "parquet", "npy", "npz", "mat", "v73.mat"),
            *("fasta", "fasta.gz", "h5ad", "h5mu"),
        ),
    )
    good = Path(f"good.{ending}")
    content = good.read_bytes() if good.exists() else Path("a.csv").read_bytes()
    Path(f"odd.{ending}").write_bytes(damaged(content, rng) if rng.random() < 0.9 else b"")
    return [*FIT, "--view", f"k=odd.{ending}", *OUTPUT]


def odd_archives(rng):
    """Archives that would execute something, or fill the memory."""
    kind = rng.integers(4)
    if kind == 0:
        np.savez("odd.npz", K=np.array([Executed()], dtype=object))
    elif kind == 1:
        header = b"\x93NUMPY\x01\x00v\x00{'descr': '<f8', 'fortran_order': False, 'shape': "
        header += b"(10000000000, 100000), }".ljust(118 - len(header) + 9) + b"\n"
        with zipfile.ZipFile("odd.npz", "w") as archive:
            archive.writestr("K.npy", header)
    elif kind == 2:
        with zipfile.ZipFile("odd.npz", "w") as archive:
            archive.writestr(f"../../{CANARY}.npy", b"x")
    else:
        Path("odd.npz").write_bytes(pickle.dumps(Executed()))
    return [*FIT, "--view", "k=odd.npz", *OUTPUT]


def odd_specifications(rng):
    """A specification with keys, values or bytes that do not belong there."""
    lines = Path("model.toml").read_text().splitlines()
    key = pick(rng, ("p", "reg", "index", "target", "views", "task", "impute", "unknown", "'é'"))
    value = pick(rng, ("1", "-1", "[]", "{}", '"x"', "true", "1979-05-27", "nan", '["a", 1]', "'"))
    lines.insert(int(rng.integers(len(lines) + 1)), f"{key} = {value}")
    if rng.random() < 0.5:
        del lines[int(rng.integers(len(lines)))]
    content = "\n".join(lines).encode()
    Path("odd.toml").write_bytes(damaged(content, rng) if rng.random() < 0.3 else content)
    return ["fit", "--spec", "odd.toml", *OUTPUT]


# -- models ----------------------------------------------------------------------------------


def odd_models(rng):
    """A model that is damaged, forged, or something else."""
    content = Path("model.skops").read_bytes()
    kind = rng.integers(5)
    if kind == 0:
        content = pickle.dumps(Executed())
    elif kind == 1:
        content = _bomb()
    elif kind == 2:
        content = _forged(content, rng)
    else:
        content = damaged(content, rng)
    Path("odd.skops").write_bytes(content)
    return pick(
        rng,
        (
            ["inspect", "odd.skops"],
            ["inspect", "odd.skops", "--json"],
            ["predict", "odd.skops", "--view", "a=a_new.csv", "--output", "out.csv"],
            ["predict", "odd.skops", "--view", "a=a_new.csv", "--view", "b=b_new.csv"],
        ),
    )


def _bomb():
    """A small archive that unpacks to two gigabytes, by what its directory says."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("schema.json", bytes(2**20))
    size = (2**20).to_bytes(4, "little")
    return file.getvalue().replace(size, (2**31).to_bytes(4, "little"))


def _forged(content, rng):
    """A model whose tree names other classes, or whose values are of other types."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    tree = json.loads(members["schema.json"])
    places = [node for node in _nodes(tree) if node]
    node = places[int(rng.integers(len(places)))]
    key = pick(rng, sorted(node))
    odd = (None, -1, 10**30, "", "os", "system", "builtins", "eval", [], {}, f"../{CANARY}", True)
    node[key] = pick(rng, odd)
    members["schema.json"] = json.dumps(tree).encode()
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, member in members.items():
            archive.writestr(name, member)
    return file.getvalue()


def _nodes(tree):
    if isinstance(tree, dict):
        yield tree
    if isinstance(tree, dict | list):
        for child in tree.values() if isinstance(tree, dict) else tree:
            yield from _nodes(child)


MAKERS = (
    *(odd_arguments, odd_views, odd_outputs, odd_tables, odd_targets, odd_survival),
    *(odd_binaries,),
    *(odd_archives, odd_specifications, odd_models, odd_models),
)
