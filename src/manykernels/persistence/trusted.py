"""Types that are trusted by default, and the check of a file against them.

The classes of this package that can be part of a fitted model are marked where they are defined,
by :func:`~manykernels.utils.storable.storable`: estimators, kernels, transforms, gates,
certificates. Only imports of this package fill the list; a module named in a file is imported only
after its name has been found there.

Of scikit-learn, all estimators are trusted, and frequent types of parameters: splitters, scorers,
kernels of Gaussian processes, column selectors.
"""

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

#: Allowed types of keys of dicts, which are called with the keys.
KEYS = frozenset({"builtins.str", "builtins.int", "builtins.float"})


@cache
def _storable() -> dict[str, Any]:
    """Import the folders that define storable classes and functions, and return these."""
    from .. import baselines, estimators, gating, kernels, losses, metrics, scale  # noqa: F401
    from . import plain  # noqa: F401

    return dict(STORABLE)


def _own(accepts: Callable[[Any], bool]) -> set[str]:
    return {path for path, item in _storable().items() if accepts(item)}


def _is_tuple(item: object) -> bool:
    return isinstance(item, type) and issubclass(item, tuple)


def _is_object(item: object) -> bool:
    return isinstance(item, type) and not _is_tuple(item)


@cache
def objects() -> Collection[str]:
    """Return types whose objects are created without calling them, and given attributes."""
    from sklearn.utils import all_estimators

    # Other packages may register estimators with scikit-learn; these are not trusted.
    estimators = {path_of(estimator) for _, estimator in all_estimators()}
    estimators = {path for path in estimators if path.startswith("sklearn.")}
    return frozenset(_own(_is_object) | estimators | _sklearn_parts() | {"builtins.object"})


def _sklearn_parts() -> set[str]:
    from sklearn import model_selection
    from sklearn.compose import make_column_selector
    from sklearn.gaussian_process import kernels
    from sklearn.metrics import get_scorer

    splitters = [item for item in vars(model_selection).values() if hasattr(item, "get_n_splits")]
    covariances = [
        item
        for item in vars(kernels).values()
        if isinstance(item, type) and hasattr(item, "theta")
    ]
    scorer = type(get_scorer("accuracy"))
    parts = {make_column_selector, scorer, kernels.Hyperparameter, *splitters, *covariances}
    return set(map(path_of, parts))


@cache
def tuples() -> Collection[str]:
    """Return types of tuples."""
    return frozenset(_own(_is_tuple) | {"builtins.tuple"})


@cache
def functions() -> Collection[str]:
    """Return functions that are looked up by name and not called: ufuncs and scores."""
    from sklearn.metrics import get_scorer, get_scorer_names

    scores = {path_of(get_scorer(name)._score_func) for name in get_scorer_names()}
    ufuncs = {f"numpy.{name}" for name in dir(np) if isinstance(getattr(np, name), np.ufunc)}
    return frozenset(_own(isfunction) | scores | ufuncs)


@cache
def array_types() -> Collection[str]:
    """Return the types of NumPy arrays and scalars."""
    numbers = {path_of(scalar) for scalar in np.sctypeDict.values()}
    return frozenset({"numpy.ndarray", *numbers} - {"numpy.object_", "numpy.void"})


@cache
def named_types() -> Collection[str]:
    """Return types that a model may contain as values, such as the type of table entries."""
    from ..losses.smooth import Poisson  # the parameter `loss` of MKGLM

    primitive = {f"builtins.{kind.__name__}" for kind in (str, int, float, bool, complex, object)}
    return frozenset({*array_types(), *primitive, path_of(Poisson)})


@cache
def sparse_matrices() -> Collection[str]:
    """Return the types of sparse matrices, which SciPy restores from its own format."""
    from scipy import sparse

    formats = ("bsr", "coo", "csc", "csr", "dia")
    types = [getattr(sparse, f"{name}_{kind}") for name in formats for kind in ("array", "matrix")]
    return frozenset(map(path_of, types))


# -- The schema of a saved model: the tree of its objects, as written by skops --------------------
#
# A node of the tree is a JSON object with the type of a Python object (``__module__``,
# ``__class__``), the name of the class of skops that restores it (``__loader__``), and a number
# (``__id__``) that identifies shared objects.
#
# :func:`canonical` numbers the nodes in their order, instead of by addresses in memory, and writes
# each only once, so that equal models have equal files. :func:`check` reads an untrusted tree
# before skops does, and is stricter than skops: it also checks *how* a type would be restored. A
# class of this package may only be created without calling it, and then be given its attributes;
# skops alone would also call it with arguments from the file. Only a few types of Python and NumPy
# are called on loading.


# Member with the tree.
SCHEMA = "schema.json"
# Largest depth of nodes. Models have less than twenty; skops needs several nested calls for each,
# of which Python allows a thousand.
_MAX_DEPTH = 100
# Largest number of nodes, counting shared nodes as often as they are used, as the audit of skops.
_MAX_NODES = 2**22
_REFERENCE = "CachedNode"
# Entries of nodes that skops reads before or after the others: an object must come before
# references to it.
_ORDER = {"key_types": -1, "__reduce__": 1}
_MEMBERS = {"NdArrayNode": ".npy", "SparseMatrixNode": ".npz", "BytesNode": ".bin"}


def is_node(value: object) -> bool:
    """Return whether skops could interpret a part of the tree as a node."""
    return isinstance(value, dict) and isinstance(value.get("__loader__"), str)


# -- writing -------------------------------------------------------------------------------


def canonical(
    schema: dict[str, Any], members: Mapping[str, bytes]
) -> tuple[dict[str, bytes], int]:
    """Number the nodes and members of a tree in their order, without repetitions.

    Returns the members, and their unpacked size in bytes, counted for each reference.
    """
    numbers: dict[Any, int] = {}
    names: dict[bytes, str] = {}
    sizes: list[int] = []

    def renumbered(value: object) -> Any:
        if isinstance(value, list):
            return [renumbered(item) for item in value]
        if not isinstance(value, dict):
            return value
        if not is_node(value):
            return {key: renumbered(item) for key, item in value.items()}
        kept = {key: value[key] for key in ("__module__", "__class__", "__loader__")}
        # Texts are not shared: they are as short as references, and skops reads some before it
        # resolves references.
        node = len(numbers) if kept["__loader__"] == "JsonNode" else ("object", value["__id__"])
        if node in numbers:
            return {**kept, "__loader__": _REFERENCE, "__id__": numbers[node]}
        kept["__id__"] = numbers[node] = len(numbers) + 1
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
    """Parse a member with a JSON object; raise if it would take more memory than the limit."""
    refuse_larger(json_size(content), max_bytes)
    try:
        parsed = json.loads(content)
    except DAMAGED as error:
        why = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise ModelFileError(f"its member {name!r} is not JSON: {why}") from error
    if not isinstance(parsed, dict):
        raise ModelFileError(f"its member {name!r} is not a JSON object")
    return parsed


def check(
    schema: dict[str, Any], members: Mapping[str, bytes], trusted: Collection[str], max_bytes: int
) -> list[str]:
    """Raise if a tree has types or loaders that are not trusted, or is inconsistent.

    `trusted` are names of further types and functions, which skops may restore in any way.
    Returns the names that skops has to trust.
    """
    checks = _Checks(members, frozenset(trusted), max_bytes)
    checks.count(schema, 0)
    if checks.unknown:
        names = sorted(checks.unknown)
        raise ModelFileError(
            f"it contains types or functions that are not trusted: {', '.join(names)}. If you "
            f"trust them and the author of the file, pass trusted={names!r}"
        )
    unused = set(members) - set(checks.used)
    if unused:
        raise ModelFileError(f"its member {min(unused)!r} is not used")
    return sorted(checks.known | set(trusted))


class _Checks:
    """Check of a tree; `known` are the trusted names in it, `unknown` the others."""

    def __init__(
        self, members: Mapping[str, bytes], trusted: frozenset[str], max_bytes: int
    ) -> None:
        self.members, self.trusted, self.max_bytes = members, trusted, max_bytes
        self.known: set[str] = set()
        self.unknown: set[str] = set()
        # Unpacked sizes of the members that nodes refer to.
        self.used: dict[str, int] = {}
        self.n_bytes = 0
        self._met: set[int] = set()
        # Complete nodes, and their numbers of nodes, by `__id__`.
        self._nodes: dict[int, dict[str, Any]] = {}
        self._counts: dict[int, int] = {}

    def count(self, value: object, depth: int) -> int:
        """Check a part of the tree, and return its number of nodes."""
        if depth > _MAX_DEPTH:
            raise ModelFileError(f"its tree is nested more than {_MAX_DEPTH} levels deep")
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
                raise ModelFileError(f"a node refers to node {number}, which does not come before")
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
        # A text, whose type is not used.
        if loader == "JsonNode":
            if not isinstance(node.get("content"), str):
                raise ModelFileError("a JsonNode has no text")
            return
        path = f"{module}.{name}"
        # Other loaders restore methods, partial functions, results of constructors, or decision
        # trees, if they are passed as `trusted`.
        allowed = _ALLOWED[loader]() if loader in _ALLOWED else ()
        (self.known if path in allowed or path in self.trusted else self.unknown).add(path)
        if loader == "DictNode":
            self._check_keys(node)
        if loader == "SliceNode":
            self._check_slice(node)
        if "file" in node:
            self._check_member(node)

    def _check_keys(self, node: dict[str, Any]) -> None:
        """Raise if types of keys, which are called with the keys, are not numbers or texts."""
        kinds, content = self._resolved(node.get("key_types")), node.get("content")
        if not isinstance(content, dict) or kinds.get("__loader__") != "ListNode":
            raise ModelFileError("a dict has no keys")
        listed = kinds.get("content")
        if not isinstance(listed, list) or len(listed) != len(content):
            raise ModelFileError("a dict has different numbers of keys and of types of keys")
        for kind in map(self._resolved, listed):
            path = f"{kind.get('__module__')}.{kind.get('__class__')}"
            if kind.get("__loader__") != "TypeNode" or path not in KEYS:
                raise ModelFileError(f"a dict has keys of the type {path}")

    def _resolved(self, value: Any) -> dict[str, Any]:
        """Return the node that a node refers to, or itself."""
        if not is_node(value):
            raise ModelFileError("a node is missing")
        number = value["__id__"]
        return self._nodes[number] if value["__loader__"] == _REFERENCE else value

    def _check_slice(self, node: dict[str, Any]) -> None:
        content = node.get("content")
        ends = content.values() if isinstance(content, dict) else [node]
        if not all(isinstance(end, int | str | None) for end in ends):
            raise ModelFileError("a slice has ends that are not numbers")

    def _check_member(self, node: dict[str, Any]) -> None:
        loader, name = node["__loader__"], node["file"]
        if not isinstance(name, str) or name not in self.members:
            raise ModelFileError(
                f"a {loader} refers to a member {str(name)[:80]!r} that does not exist"
            )
        content, ending = self.members[name], _MEMBERS.get(loader)
        if ending is not None and not name.endswith(ending):
            raise ModelFileError(f"a {loader} refers to a member {name!r} of another format")
        if name not in self.used:
            self.used[name] = len(content)
            if ending == ".npy":
                check_array(content, name)
            elif ending == ".npz":
                self.used[name] = check_sparse(content, name, self.max_bytes)
        # Members are unpacked for each reference.
        self.n_bytes += self.used[name]
        refuse_larger(self.n_bytes, self.max_bytes)


def _just(*names: str) -> Callable[[], Collection[str]]:
    return lambda: names


# Types that each loader of skops may restore. They are computed when first needed, since the
# search for the estimators of scikit-learn takes time.
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
