"""A saved model, taken apart and put together in ways that `save` does not."""

import io
import json
import warnings
import zipfile

import manykernels as mk
from manykernels.kernels import RBF, Linear
from tests.estimators.registry import Y
from tests.persistence.cases import NEW, TRAIN, N

MODEL = mk.MKFDA({"rbf": RBF(), "flat": Linear()}).fit(TRAIN, Y[:N])
OUTPUTS = MODEL.decision_function(NEW)
#: Headers of arrays that Python, NumPy or tokenize cannot read, made of a member .npy.
DAMAGED_HEADERS = [
    lambda array: array.replace(b"}", b"(", 1),  # tokenize.TokenError
    lambda array: array.replace(b"{", b"[", 1),
    lambda array: array.replace(b"'shape'", b"'s\\xpe'", 1),
    lambda array: array.replace(b"False", b"\n\t\n  ", 1),
    lambda array: array.replace(b"'descr'", b"'other'", 1),
    lambda array: array.replace(b"'<f8'", b"'<q9'", 1),
    lambda array: array.replace(b"NUMPY\x01", b"NUMPY\x07", 1),
    lambda array: array[:9],
]
# Set if anything in a file is called.
EXECUTED = []


def canary(*arguments, **keywords):
    EXECUTED.append(arguments)


class Canary:
    """Tells if it is made, called or given a state."""

    def __new__(cls, *arguments):
        canary("new")
        return super().__new__(cls)

    def __setstate__(self, state):
        canary("state")


class Reducer:
    """Tells if it is unpickled."""

    def __reduce__(self):
        return canary, ("unpickled",)


def members_of(content):
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def archive_of(members, compression=zipfile.ZIP_DEFLATED):
    """An archive of pairs of names and contents."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of names that come twice
        for name, member in members:
            archive.writestr(name, member)
    return file.getvalue()


def forged(content, change):
    """The archive with another tree."""
    members = members_of(content)
    tree = json.loads(members["schema.json"])
    tree = change(tree) or tree
    members["schema.json"] = json.dumps(tree).encode()
    return archive_of(members.items())


def with_attribute(content, node):
    """The model with a node as one more attribute."""

    def change(tree):
        tree["content"]["content"]["extra"] = node
        kinds = tree["content"]["key_types"]["content"]
        kinds.append(
            dict(kinds[-1])
            if kinds[-1]["__loader__"] == "CachedNode"
            else {**kinds[-1], "__loader__": "CachedNode"}
        )

    return forged(content, change)


def node(loader, path, number=90_001, **more):
    module, _, name = path.rpartition(".")
    return {
        "__loader__": loader,
        "__module__": module,
        "__class__": name,
        "__id__": number,
        **more,
    }


def text(value, number=90_002):
    return node("JsonNode", "builtins.str", number, content=json.dumps(value), is_json=True)


def listed(*items, number=90_003, kind="TupleNode", path="builtins.tuple"):
    return node(kind, path, number, content=list(items))
