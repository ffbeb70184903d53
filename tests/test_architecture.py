"""The house keeps its shape: imports point one way, rooms stay small, importing stays light."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import manykernels

ROOT = Path(manykernels.__file__).parent
# Each room may import from itself and from the rooms before it.
ORDER = [
    "_rounding",
    "_blas",
    "_compiled",
    "_files",
    "_folds",
    "_memory",
    "_sklearn",
    "_warnings",
    "metrics",
    "domains",
    "smo",
    "losses",
    "solvers",
    "kernels",
]
ORDER += ["discriminant", "denoising", "gating", "estimators", "baselines"]
ORDER += ["model_selection", "report"]
PURE = {"domains", "smo", "losses", "solvers", "_blas", "_compiled"}
MAX_LINES = 420


def modules():
    for path in sorted(ROOT.rglob("*.py")):
        relative = path.relative_to(ROOT).with_suffix("")
        yield relative.parts, ast.parse(path.read_text()), path


def imported_rooms(parts, tree):
    """First part below the package of every module imported, and foreign packages."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((None, alias.name.split(".")[0]) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield None, node.module.split(".")[0]
        elif isinstance(node, ast.ImportFrom):
            base = list(parts[: len(parts) - node.level])
            target = base + (node.module.split(".") if node.module else [node.names[0].name])
            yield target[0], None


def test_imports_point_one_way():
    for parts, tree, path in modules():
        room = parts[0]
        if room not in ORDER:
            continue
        for target, _ in imported_rooms(parts, tree):
            if target in ORDER:
                assert ORDER.index(target) <= ORDER.index(room), f"{path} imports {target}"


def test_the_numerical_rooms_know_no_scikit_learn():
    for parts, tree, path in modules():
        if parts[0] in PURE:
            foreign = {name for _, name in imported_rooms(parts, tree)}
            assert "sklearn" not in foreign, path


def test_files_stay_readable():
    for _, _, path in modules():
        n_lines = len(path.read_text().splitlines())
        assert n_lines <= MAX_LINES, f"{path} has {n_lines} lines"


def test_importing_is_light():
    code = (
        "import sys, manykernels; "
        "print([m for m in ('matplotlib', 'numba', 'dask', 'highspy', 'cvxpy')"
        " if m in sys.modules])"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert answer.stdout.strip() == "[]"
