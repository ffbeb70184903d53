"""The suite keeps its own rules: every case asserts, none is skipped, none draws unseeded."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
FILES = {
    ".".join(["tests", *path.relative_to(HERE).with_suffix("").parts]): ast.parse(path.read_text())
    for path in sorted(HERE.rglob("*.py"))
}
FUNCTIONS = {
    (module, node.name): node
    for module, tree in FILES.items()
    for node in tree.body
    if isinstance(node, ast.FunctionDef)
}
TESTS = [key for key in FUNCTIONS if key[1].startswith("test")]
IMPORTED = {
    (module, alias.asname or alias.name): (node.module, alias.name)
    for module, tree in FILES.items()
    for node in tree.body
    if isinstance(node, ast.ImportFrom)
    for alias in node.names
}
UNSEEDED = ("np.random.default_rng()", "np.random.RandomState()")
ASSERTING = ("assert", "raises", "warns", "deprecated_call")


def within(node):
    """Nodes of a function, not of functions and classes written inside it."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, (ast.FunctionDef, ast.ClassDef, ast.Lambda)):
            yield child
            yield from within(child)


def called(node):
    return [ast.unparse(n.func) for n in within(node) if isinstance(n, ast.Call)]


def asserts(key, seen=()):
    """Whether a function asserts, by itself or through a function of the suite it calls."""
    node = FUNCTIONS.get(key)
    if node is None or key in seen:
        return False
    if any(isinstance(n, ast.Assert) for n in within(node)):
        return True
    names = called(node)
    if any(name.split(".")[-1].startswith(ASSERTING) for name in names):
        return True
    module = key[0]
    helpers = [IMPORTED.get((module, name), (module, name)) for name in names]
    return any(asserts(helper, (*seen, key)) for helper in helpers)


def test_every_test_asserts():
    assert len(TESTS) > 500
    assert [key for key in TESTS if not asserts(key)] == []


def test_no_test_returns_before_its_end():
    """A case about which a test has nothing to say is not to be collected."""
    returning = [
        (*key, n.lineno)
        for key in TESTS
        for n in within(FUNCTIONS[key])
        if isinstance(n, ast.Return)
    ]
    assert returning == []


@pytest.mark.parametrize("word", ["skip", "skipif", "xfail", "importorskip"])
def test_nothing_is_skipped(word):
    found = [
        (module, n.lineno)
        for module, tree in FILES.items()
        for n in ast.walk(tree)
        if isinstance(n, ast.Attribute) and n.attr == word and "pytest" in ast.unparse(n.value)
    ]
    assert found == []


def test_nothing_is_drawn_unseeded():
    """By a generator without a seed, or by the one that all of a process shares."""
    found = []
    for module, tree in FILES.items():
        for n in ast.walk(tree):
            if isinstance(n, ast.Call) and ast.unparse(n) in UNSEEDED:
                found.append((module, n.lineno))
            elif isinstance(n, ast.Attribute) and ast.unparse(n.value) == "np.random":
                found += [(module, n.lineno)] * (n.attr not in ("default_rng", "RandomState"))
    assert found == []


def generators(tree):
    """Names of random generators at the top of a module."""
    return {
        node.targets[0].id
        for node in tree.body
        if isinstance(node, ast.Assign)
        if isinstance(node.value, ast.Call)
        if ast.unparse(node.value.func) in ("np.random.default_rng", "np.random.RandomState")
    }


def test_no_test_shares_a_generator():
    """What a shared one draws depends on which tests came before, and on which worker."""
    found = []
    for module, name in FUNCTIONS:
        node = FUNCTIONS[module, name]
        names = [n for n in ast.walk(node) if isinstance(n, ast.Name)]
        own = {n.id for n in names if isinstance(n.ctx, ast.Store)}
        own |= {n.arg for n in ast.walk(node) if isinstance(n, ast.arg)}
        shared = {n.id for n in names} - own
        found += [(module, name, each) for each in shared & generators(FILES[module])]
    assert found == []


INTERRUPTED = """
import signal
import pytest

def test_an_interruption_is_an_exception():
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
"""


def test_interruptions_are_exceptions_even_if_the_shell_ignores_them(tmp_path):
    """As shells do for what runs in the background."""
    path = tmp_path / "test_interrupted.py"
    path.write_text(INTERRUPTED)
    # The fixture of the conftest.py that all tests share.
    pytest_of_one = [sys.executable, "-m", "pytest", "-q", "-p", "conftest", str(path)]
    done = subprocess.run(
        ["sh", "-c", 'trap "" INT; exec "$@"', "sh", *pytest_of_one],
        capture_output=True,
        cwd=HERE.parent,
    )
    assert done.returncode == 0, done.stdout.decode()
