"""Imports between folders point one way, and constants are explained."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import manykernels

ROOT = Path(manykernels.__file__).parent
# Each room may import from itself and from the rooms before it.
ORDER = [
    *[
        "utils",
        "survival",
        "domains",
        "smo",
        "losses",
        "solvers",
        "metrics",
        "kernels",
        "discriminant",
        "denoising",
    ],
    *["gating", "scale", "estimators", "baselines", "model_selection", "display", "inspection"],
    *["comparison", "reporting", "datasets", "persistence", "cli", "__main__", "__init__"],
]
# Numerical rooms, which know no scikit-learn.
PURE = {"domains", "smo", "losses", "solvers"}
PATHS = sorted(ROOT.rglob("*.py"))
TREES = {path: ast.parse(path.read_text()) for path in PATHS}
every_file = pytest.mark.parametrize(
    "path", PATHS, ids=lambda path: str(path.relative_to(ROOT).with_suffix(""))
)


def parts_of(path):
    return path.relative_to(ROOT).with_suffix("").parts


def imported_rooms(path):
    """First part below the package of every module imported, and foreign packages."""
    parts = parts_of(path)
    for node in ast.walk(TREES[path]):
        if isinstance(node, ast.Import):
            yield from ((None, alias.name.split(".")[0]) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield None, node.module.split(".")[0]
        elif isinstance(node, ast.ImportFrom):
            base = list(parts[: len(parts) - node.level])
            target = base + (node.module.split(".") if node.module else [node.names[0].name])
            yield target[0], None


# -- rooms -----------------------------------------------------------------------------------


def test_every_room_has_its_place():
    assert sorted({parts_of(path)[0] for path in PATHS}) == sorted(ORDER)


@every_file
def test_imports_point_one_way(path):
    room = ORDER.index(parts_of(path)[0])
    for target, _ in imported_rooms(path):
        assert target is None or ORDER.index(target) <= room, f"{path} imports {target}"


def test_the_package_is_imported_from_within_by_relative_names():
    """Or else the order of rooms could not be read off the files."""
    for path in PATHS:
        assert "manykernels" not in {name for _, name in imported_rooms(path)}, path


def test_the_numerical_rooms_know_no_scikit_learn():
    for path in PATHS:
        if parts_of(path)[0] in PURE:
            assert "sklearn" not in {name for _, name in imported_rooms(path)}, path


def imported_modules(path):
    """Modules of this package that a file imports, as parts of their names below the package."""
    parts = parts_of(path)
    for node in ast.walk(TREES[path]):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = parts[: len(parts) - node.level]
            named = (*base, *(node.module or "").split(".")) if node.module else base
            yield named
            yield from ((*named, alias.name) for alias in node.names)


def test_private_modules_are_imported_in_their_own_folder_only():
    modules = {parts_of(path) for path in PATHS}
    for path in PATHS:
        for target in imported_modules(path):
            if target in modules and target[-1].startswith("_"):
                assert target[:-1] == parts_of(path)[:-1], f"{path} imports {target}"


# -- constants -------------------------------------------------------------------------------

# Sizes of rounding errors, which utils/numerics.py has for all.
ROUNDING = re.compile(r"_*(EPS|TINY|ROUNDING|ACCUMULATED|NOTHING)")


def constants(path):
    """What is assigned at the top of a module, and the names it is assigned to."""
    for node in TREES[path].body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found = [inner for target in targets for inner in ast.walk(target)]
            yield node, [inner.id for inner in found if isinstance(inner, ast.Name)]


def is_numeric(node):
    """Whether an expression is a number, or computed from numbers and other constants."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int | float) and not isinstance(node.value, bool)
    if isinstance(node, ast.UnaryOp):
        return is_numeric(node.operand)
    if isinstance(node, ast.BinOp):
        sides = (node.left, node.right)
        return any(map(is_numeric, sides)) and all(
            is_numeric(side) or isinstance(side, ast.Name) for side in sides
        )
    if isinstance(node, ast.Tuple):
        return bool(node.elts) and all(map(is_numeric, node.elts))
    return False


@every_file
def test_rounding_errors_have_one_home(path):
    if parts_of(path) != ("utils", "numerics"):
        # That of numbers as they were given depends on these.
        assert not re.search(r"\bfinfo\b(?!\(\w+\.dtype\))", path.read_text())
        own = [name for _, names in constants(path) for name in names]
        assert [name for name in own if ROUNDING.fullmatch(name)] == []


@every_file
def test_every_number_says_what_it_is(path):
    """By a comment on its line or above it, which it may share with the constants next to it."""
    lines, explained, silent = path.read_text().splitlines(), set(), []
    for node, names in constants(path):
        above = max(node.lineno - 1, 1)
        commented = "#" in lines[node.end_lineno - 1] or lines[above - 1].startswith("#")
        if commented or above in explained:
            explained.add(node.end_lineno)
        elif is_numeric(node.value):
            silent.append((node.lineno, names))
    assert silent == []
