"""Forged trees: what would execute something is refused by name, before anything is restored."""

import json
import sys

import pytest
from numpy.testing import assert_array_equal

from manykernels import ModelFileError
from tests.persistence.archives import (
    MODEL,
    OUTPUTS,
    Canary,
    archive_of,
    forged,
    listed,
    members_of,
    node,
    text,
    with_attribute,
)
from tests.persistence.cases import NEW

ARGUMENTS = listed(text("touch"))
EMPTY = node(
    "DictNode",
    "builtins.dict",
    90_010,
    key_types=listed(number=90_011, kind="ListNode", path="builtins.list"),
    content={},
)
HERE = Canary.__module__


def payloads():
    """Nodes that would execute something if they were restored."""
    for path in ("os.system", "builtins.eval", "builtins.exec", f"{HERE}.canary"):
        yield node("FunctionNode", path)
        yield node("TypeNode", path)
        yield node("ConstructorFromReduceNode", path, content=ARGUMENTS)
        yield node("ListNode", path, content=[text("touch")])
        yield node("SetNode", path, content=[text("touch")])
        yield node("DictNode", path, key_types=EMPTY["key_types"], content={})
        yield node(
            "PartialNode",
            "functools.partial",
            content={"func": node("FunctionNode", path, 90_004)},
        )
        yield node("LossNode", path, content=EMPTY, __reduce__={"args": ARGUMENTS})
    for kind in ("ObjectNode", "ConstructorFromReduceNode", "TupleNode", "MethodNode", "ListNode"):
        yield node(kind, f"{HERE}.Canary", content=EMPTY)
    yield node("OperatorFuncNode", "operator.methodcaller", attrs=ARGUMENTS)
    yield node("OperatorFuncNode", "operator.attrgetter", attrs=ARGUMENTS)
    yield node("MethodNode", "builtins.str", content={"func": "format", "obj": text("x")})
    # Trusted types in ways that would call them.
    for path in ("manykernels.kernels.standard.RBF", "sklearn.pipeline.Pipeline"):
        yield node("ConstructorFromReduceNode", path, content=ARGUMENTS)
        yield node("ListNode", path, content=[text("touch")])
        yield node("SetNode", path, content=[])
        yield node("TupleNode", path, content=[text("touch")])
        yield node("TypeNode", path)
        yield node("DictNode", path, key_types=EMPTY["key_types"], content={})
    yield node("ObjectNode", "manykernels.kernels.adapters.CallableKernel")
    yield node("ObjectNode", "joblib.memory.Memory")
    yield node(
        "TreeNode", "sklearn.tree._tree.Tree", content=EMPTY, __reduce__={"args": ARGUMENTS}
    )
    yield node("MaskedArrayNode", "numpy.ma.MaskedArray", content={})
    yield node("NoSuchNode", "builtins.str")


@pytest.mark.parametrize(
    "payload", list(payloads()), ids=lambda one: f"{one['__loader__']} of {one['__class__']}"
)
def test_payloads_are_refused_by_name(load, content, payload):
    name = f"{payload['__module__']}.{payload['__class__']}"
    with pytest.raises(ModelFileError, match="not trusted: ") as refused:
        load(with_attribute(content, payload))
    assert name in str(refused.value)


def test_a_harmless_attribute_is_not_refused(load, content):
    """Or else the payloads above might be refused for another reason."""
    model = load(with_attribute(content, listed(text("harmless"))))
    assert model.extra == ("harmless",)
    assert_array_equal(model.decision_function(NEW), OUTPUTS)


def test_payloads_in_the_place_of_the_model(load, content):
    for payload in payloads():
        with pytest.raises(ModelFileError, match="not trusted: "):
            load(forged(content, lambda tree, one=payload: {**tree, **one}))


def test_keys_are_not_made_by_calling_anything_else(load, content):
    for path in ("manykernels.kernels.standard.RBF", "builtins.object", "numpy.float64"):
        kinds = listed(
            node("TypeNode", path, 90_005), number=90_006, kind="ListNode", path="builtins.list"
        )
        payload = node("DictNode", "builtins.dict", key_types=kinds, content={"touch": text(1)})
        with pytest.raises(ModelFileError, match=r"keys of the type|not trusted"):
            load(with_attribute(content, payload))


def test_an_older_protocol_is_checked_alike(load, content):
    for protocol in (0, 1, 2):
        payload = node(
            "FunctionNode", "os.system", content={"module_path": "os", "function": "system"}
        )
        members = members_of(with_attribute(content, payload))
        tree = json.loads(members["schema.json"])
        members["schema.json"] = json.dumps({**tree, "protocol": protocol}).encode()
        with pytest.raises(ModelFileError, match=r"not trusted: os.system"):
            load(archive_of(members.items()))


def test_trees_that_refer_to_themselves_or_to_nothing(load, content):
    for number in (1, 77_777):
        payload = node("CachedNode", "builtins.list", number)
        with pytest.raises(ModelFileError, match="does not come before"):
            load(with_attribute(content, payload))
    with pytest.raises(ModelFileError, match="two nodes have the number 2"):
        load(with_attribute(content, listed(number=2)))
    payload = node("NdArrayNode", "numpy.ndarray", type="numpy", file="nowhere.npy")
    with pytest.raises(ModelFileError, match=r"'nowhere.npy' that does not exist"):
        load(with_attribute(content, payload))
    payload = node("NdArrayNode", "numpy.ndarray", type="numpy", file="schema.json")
    with pytest.raises(ModelFileError, match="refers to a member"):
        load(with_attribute(content, payload))


def test_trees_that_grow_when_they_are_read(load, content):
    """Thirty lists, each of which refers twice to the one before."""
    nested = listed(number=91_000)
    for level in range(1, 31):
        again = node("CachedNode", "builtins.tuple", 90_999 + level)
        nested = listed(nested, again, number=91_000 + level)
    with pytest.raises(ModelFileError, match=r"more than .* nodes"):
        load(with_attribute(content, nested))


@pytest.mark.parametrize("depth", [120, 400, 100_000])
def test_deep_trees(load, content, depth):
    members = members_of(content)
    members["schema.json"] = b'{"content":' * depth + b"1" + b"}" * depth
    with pytest.raises(ModelFileError, match=r"nested"):
        load(archive_of(members.items()))
    limit = sys.getrecursionlimit()
    payload = text(None) | {"content": "[" * 100_000 + "]" * 100_000}
    with pytest.raises(ModelFileError, match="are inconsistent"):
        load(with_attribute(content, payload))
    assert sys.getrecursionlimit() == limit


@pytest.mark.parametrize("tree", [b"[]", b"1", b"null", b"{}", b"{", b"\xff", b'{"protocol":2}'])
def test_invalid_schemas(load, content, tree):
    members = members_of(content)
    members = {"manykernels.json": members["manykernels.json"], "schema.json": tree}
    with pytest.raises(ModelFileError):
        load(archive_of(members.items()))


def test_a_tree_without_an_estimator(load, content):
    members = members_of(content)
    tree = json.loads(members["schema.json"])
    root = {"protocol": tree["protocol"], **text("just a text", 1)}
    members = {"manykernels.json": members["manykernels.json"]}
    members["schema.json"] = json.dumps(root).encode()
    with pytest.raises(ModelFileError, match="no estimator of manykernels"):
        load(archive_of(members.items()))


def test_an_estimator_that_is_not_fitted(load, content):
    def change(tree):
        attributes = tree["content"]["content"]
        params = set(MODEL.get_params(deep=False))
        kept = {name: one for name, one in attributes.items() if name in params}
        attributes.clear()
        attributes.update({name: text(None, 80_000 + n) for n, name in enumerate(kept)})
        kinds = tree["content"]["key_types"]["content"]
        del kinds[len(kept) :]

    members = members_of(forged(content, change))
    members = {name: one for name, one in members.items() if name.endswith(".json")}
    with pytest.raises(ModelFileError, match="not fitted"):
        load(archive_of(members.items()))


def test_trusted_is_a_list_of_names(load, content):
    for trusted in ("os.system", True, [Canary]):
        with pytest.raises(TypeError):
            load(content, trusted=trusted)
