"""What may be restored from a file without being asked for by name.

The classes of this package that may be part of a fitted model are marked where they are defined,
by :func:`~manykernels.utils.storable.storable`: estimators, kernels, transforms, gates,
certificates. Importing this package alone fills the list; no module that a file names is imported
before the name has been found there.

From scikit-learn, the estimators that skops trusts are trusted, and besides them what their
parameters and ours often hold: splitters, scorers, kernels of Gaussian processes, selectors of
columns.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from functools import cache
from inspect import isfunction
from typing import Any

import numpy as np

from ..utils.storable import STORABLE, path_of
from .archive import (
    DAMAGED,
    ModelFileError,
    check_array,
    check_sparse,
    json_size,
    refuse_larger,
    sparse_size,
)

#: Types of the keys of dicts, which are called with the keys.
KEYS = frozenset({"builtins.str", "builtins.int", "builtins.float"})


@cache
def _storable() -> dict[str, Any]:
    """Marked classes and functions, after the folders that define them have been imported."""
    from .. import baselines, estimators, gating, kernels, losses, scale  # noqa: F401
    from . import plain  # noqa: F401

    return dict(STORABLE)


def _own(accepts: Callable[[Any], bool]) -> set[str]:
    return {path for path, item in _storable().items() if accepts(item)}


def _is_tuple(item: Any) -> bool:
    return isinstance(item, type) and issubclass(item, tuple)


def _is_object(item: Any) -> bool:
    return isinstance(item, type) and not _is_tuple(item)


@cache
def objects() -> Collection[str]:
    """Types that are made without calling them, and then given their attributes."""
    from sklearn.utils import all_estimators

    # A package that registers its estimators with scikit-learn is not thereby trusted.
    estimators = {path_of(one) for _, one in all_estimators()}
    estimators = {path for path in estimators if path.startswith("sklearn.")}
    return frozenset(_own(_is_object) | estimators | _sklearn_parts() | {"builtins.object"})


def _sklearn_parts() -> set[str]:
    from sklearn import model_selection
    from sklearn.compose import make_column_selector
    from sklearn.gaussian_process import kernels
    from sklearn.metrics import get_scorer

    splitters = [one for one in vars(model_selection).values() if hasattr(one, "get_n_splits")]
    covariances = [
        one for one in vars(kernels).values() if isinstance(one, type) and hasattr(one, "theta")
    ]
    scorer = type(get_scorer("accuracy"))
    parts = {make_column_selector, scorer, kernels.Hyperparameter, *splitters, *covariances}
    return set(map(path_of, parts))


@cache
def tuples() -> Collection[str]:
    """Types of tuples."""
    return frozenset(_own(_is_tuple) | {"builtins.tuple"})


@cache
def functions() -> Collection[str]:
    """Functions, which are found by name and not called: of arrays, or scores of scikit-learn."""
    from sklearn.metrics import get_scorer, get_scorer_names

    scores = {path_of(get_scorer(name)._score_func) for name in get_scorer_names()}
    ufuncs = {f"numpy.{name}" for name in dir(np) if isinstance(getattr(np, name), np.ufunc)}
    return frozenset(_own(isfunction) | scores | ufuncs)


@cache
def array_types() -> Collection[str]:
    """Arrays and single numbers of NumPy."""
    numbers = {path_of(one) for one in np.sctypeDict.values()}
    return frozenset({"numpy.ndarray", *numbers} - {"numpy.object_", "numpy.void"})


@cache
def named_types() -> Collection[str]:
    """Types that a model may name, such as the type of the entries of a table."""
    primitive = {f"builtins.{one.__name__}" for one in (str, int, float, bool, complex, object)}
    return frozenset({*array_types(), *primitive})


@cache
def sparse_matrices() -> Collection[str]:
    """Sparse matrices, which SciPy restores by the format that it has written."""
    from scipy import sparse

    kinds = ("bsr", "coo", "csc", "csr", "dia")
    found = [getattr(sparse, f"{kind}_{what}") for kind in kinds for what in ("array", "matrix")]
    return frozenset(map(path_of, found))


# -- The schema of a saved model: the tree of its objects, as skops writes it ---------------------
#
# A node of the tree is a JSON object with the type of an object of Python (``__module__``,
# ``__class__``), the name of the class of skops that restores it (``__loader__``), and a number
# (``__id__``) by which objects that are met twice are known.
#
# :func:`canonical` numbers the nodes in their order, in place of addresses in memory, and writes
# each only once, so that equal models make equal files. :func:`check` reads a tree of unknown
# origin before skops does, and is stricter than skops: it also looks at *how* a type would be
# restored. A class of this package may only be made without calling it, and then be given its
# attributes; skops alone would also call it with arguments from the file. Whatever is called on
# loading is one of a few types of Python and NumPy.


# The member with the tree.
SCHEMA = "schema.json"
# Deepest nesting of nodes. Models have less than twenty; skops needs several calls for each, of
# which Python allows a thousand.
_MAX_DEPTH = 100
# Most nodes if those that are met twice are counted twice, which skops does when it audits.
_MAX_NODES = 2**22
_REFERENCE = "CachedNode"
# Parts of nodes that skops reads before or after the others: it has to meet an object before it
# meets references to it.
_ORDER = {"key_types": -1, "__reduce__": 1}
_MEMBERS = {"NdArrayNode": ".npy", "SparseMatrixNode": ".npz", "BytesNode": ".bin"}


def is_node(value: Any) -> bool:
    """Whether skops could take a part of the tree for a node."""
    return isinstance(value, dict) and isinstance(value.get("__loader__"), str)


# -- writing -------------------------------------------------------------------------------


def canonical(
    schema: dict[str, Any], members: Mapping[str, bytes]
) -> tuple[dict[str, bytes], int]:
    """The same tree with nodes and members numbered in their order, each there once.

    The second part of the answer is the number of bytes that the members unpack to, each as often
    as nodes refer to it.
    """
    numbers: dict[Any, int] = {}
    names: dict[bytes, str] = {}
    sizes: list[int] = []

    def renumbered(value: Any) -> Any:
        if isinstance(value, list):
            return [renumbered(item) for item in value]
        if not isinstance(value, dict):
            return value
        if not is_node(value):
            return {key: renumbered(item) for key, item in value.items()}
        kept = {key: value[key] for key in ("__module__", "__class__", "__loader__")}
        # Texts are as short as references, and skops looks into some before it resolves them.
        own = len(numbers) if kept["__loader__"] == "JsonNode" else ("object", value["__id__"])
        if own in numbers:
            return {**kept, "__loader__": _REFERENCE, "__id__": numbers[own]}
        kept["__id__"] = numbers[own] = len(numbers) + 1
        for key in sorted(value, key=lambda key: _ORDER.get(key, 0)):
            item = value[key]
            if key == "file":
                content = members[item]
                ending = _MEMBERS.get(value["__loader__"], ".bin")
                kept[key] = names.setdefault(content, f"{len(names) + 1}{ending}")
                sizes.append(sparse_size(content) if ending == ".npz" else len(content))
            elif key not in kept:
                kept[key] = renumbered(item)
        return kept

    tree = json.dumps(renumbered(schema), separators=(",", ":")).encode()
    return {SCHEMA: tree, **{name: content for content, name in names.items()}}, sum(sizes)


# -- reading -------------------------------------------------------------------------------


def parsed(content: bytes, name: str, max_bytes: int) -> dict[str, Any]:
    """A JSON object in a member of the archive, if it takes no more memory than the limit."""
    refuse_larger(json_size(content), max_bytes)
    try:
        found = json.loads(content)
    except DAMAGED as error:
        why = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise ModelFileError(f"its member {name!r} is no JSON: {why}") from error
    if not isinstance(found, dict):
        raise ModelFileError(f"its member {name!r} holds no JSON object")
    return found


def check(
    schema: dict[str, Any], members: Mapping[str, bytes], trusted: Collection[str], max_bytes: int
) -> list[str]:
    """Refuse a tree with types or loaders that are not trusted, or that does not fit together.

    `trusted` are names of further types and functions, which may be restored in any way that
    skops knows. The answer has the names that are left for skops to trust.
    """
    checks = _Checks(members, frozenset(trusted), max_bytes)
    checks.count(schema, 0)
    if checks.unknown:
        names = sorted(checks.unknown)
        raise ModelFileError(
            f"it holds what is not trusted: {', '.join(names)}. Look at what that is; if you "
            f"trust it and whoever made the file, pass trusted={names!r}"
        )
    unused = set(members) - set(checks.used)
    if unused:
        raise ModelFileError(f"nothing refers to its member {min(unused)!r}")
    return sorted(checks.known | set(trusted))


class _Checks:
    """One pass through a tree: `known` are the names that are trusted, `unknown` the others."""

    def __init__(
        self, members: Mapping[str, bytes], trusted: frozenset[str], max_bytes: int
    ) -> None:
        self.members, self.trusted, self.max_bytes = members, trusted, max_bytes
        self.known: set[str] = set()
        self.unknown: set[str] = set()
        # Members that nodes refer to, and bytes that they unpack to.
        self.used: dict[str, int] = {}
        self.n_bytes = 0
        self._met: set[int] = set()
        # Nodes that are complete, by their numbers, and how many nodes each has.
        self._nodes: dict[int, dict[str, Any]] = {}
        self._counts: dict[int, int] = {}

    def count(self, value: Any, depth: int) -> int:
        """How many nodes a part of the tree has; it is checked on the way."""
        if depth > _MAX_DEPTH:
            raise ModelFileError(f"its tree is nested more than {_MAX_DEPTH} deep")
        if isinstance(value, list | dict) and not is_node(value):
            items = value if isinstance(value, list) else value.values()
            total = sum(self.count(item, depth + 1) for item in items)
        elif isinstance(value, dict):
            total = self._count_node(value, depth)
        else:
            return 0
        if total > _MAX_NODES:
            raise ModelFileError(f"its tree has more than {_MAX_NODES} nodes")
        return total

    def _count_node(self, node: dict[str, Any], depth: int) -> int:
        number = node.get("__id__")
        if type(number) is not int or number < 1:
            raise ModelFileError(f"a node has the number {number!r}")
        if node["__loader__"] == _REFERENCE:
            if number not in self._nodes:
                raise ModelFileError(f"a node refers to a node {number} that does not come before")
            return self._counts[number]
        if number in self._met:
            raise ModelFileError(f"two nodes have the number {number}")
        self._met.add(number)
        total = 1 + sum(self.count(item, depth + 1) for item in node.values())
        self._check_type(node)
        self._nodes[number], self._counts[number] = node, total
        return total

    def _check_type(self, node: dict[str, Any]) -> None:
        loader, module, name = (node.get(f"__{part}__") for part in ("loader", "module", "class"))
        if not isinstance(module, str) or not isinstance(name, str):
            raise ModelFileError(f"a {loader} has no type")
        # Text alone; its type is not looked at.
        if loader == "JsonNode":
            if not isinstance(node.get("content"), str):
                raise ModelFileError("a JsonNode holds no text")
            return
        path = f"{module}.{name}"
        # Loaders that are not allowed restore methods, partial functions, what a constructor is
        # called for, or decision trees: by request only.
        allowed = _ALLOWED[loader]() if loader in _ALLOWED else ()
        (self.known if path in allowed or path in self.trusted else self.unknown).add(path)
        if loader == "DictNode":
            self._check_keys(node)
        if loader == "SliceNode":
            self._check_slice(node)
        if "file" in node:
            self._check_member(node)

    def _check_keys(self, node: dict[str, Any]) -> None:
        """Types of keys are called with the keys: only those that make numbers and texts."""
        kinds, content = self._resolved(node.get("key_types")), node.get("content")
        if not isinstance(content, dict) or kinds.get("__loader__") != "ListNode":
            raise ModelFileError("a dict has no keys")
        listed = kinds.get("content")
        if not isinstance(listed, list) or len(listed) != len(content):
            raise ModelFileError("a dict has other keys than types of keys")
        for kind in map(self._resolved, listed):
            path = f"{kind.get('__module__')}.{kind.get('__class__')}"
            if kind.get("__loader__") != "TypeNode" or path not in KEYS:
                raise ModelFileError(f"a dict has keys of the type {path}")

    def _resolved(self, value: Any) -> dict[str, Any]:
        """The node that a node refers to, or itself."""
        if not is_node(value):
            raise ModelFileError("a node is expected where there is none")
        number = value["__id__"]
        return self._nodes[number] if value["__loader__"] == _REFERENCE else value

    def _check_slice(self, node: dict[str, Any]) -> None:
        content = node.get("content")
        ends = content.values() if isinstance(content, dict) else [node]
        if not all(isinstance(end, int | str | None) for end in ends):
            raise ModelFileError("a slice has ends that are no numbers")

    def _check_member(self, node: dict[str, Any]) -> None:
        loader, name = node["__loader__"], node["file"]
        if not isinstance(name, str) or name not in self.members:
            raise ModelFileError(f"a {loader} refers to a member {str(name)[:80]!r} that is not")
        content, ending = self.members[name], _MEMBERS.get(loader)
        if ending is not None and not name.endswith(ending):
            raise ModelFileError(f"a {loader} refers to a member {name!r} of another kind")
        if name not in self.used:
            self.used[name] = len(content)
            if ending == ".npy":
                check_array(content, name)
            elif ending == ".npz":
                self.used[name] = check_sparse(content, name, self.max_bytes)
        # A member is unpacked again for every node that refers to it.
        self.n_bytes += self.used[name]
        refuse_larger(self.n_bytes, self.max_bytes)


def _just(*names: str) -> Callable[[], Collection[str]]:
    return lambda: names


# For every class of skops that may restore something: what it may restore. The names are made when
# they are first needed, since scikit-learn has to be searched for its estimators.
_ALLOWED: dict[str, Callable[[], Collection[str]]] = {
    "ObjectNode": objects,
    "DictNode": _just("builtins.dict", "collections.OrderedDict"),
    "ListNode": _just("builtins.list"),
    "SetNode": _just("builtins.set"),
    "TupleNode": tuples,
    "SliceNode": _just("builtins.slice"),
    "BytesNode": _just("builtins.bytes"),
    "TypeNode": named_types,
    "DTypeNode": _just("numpy.dtype"),
    "NdArrayNode": array_types,
    "SparseMatrixNode": sparse_matrices,
    "FunctionNode": functions,
    "RandomStateNode": _just("numpy.random.mtrand.RandomState"),
    "RandomGeneratorNode": _just("numpy.random._generator.Generator"),
}
