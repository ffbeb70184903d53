"""The names that are trusted without being asked for: complete, and harmless."""

import importlib
import inspect

import pytest

import manykernels as mk
from manykernels import baselines, gating, kernels
from manykernels.kernels import Kernel
from manykernels.kernels.adapters import CallableKernel
from manykernels.kernels.transforms import StackTransform
from manykernels.persistence import trusted
from manykernels.utils.storable import path_of

STORABLE = trusted._storable()
OWN = sorted(path for path, item in STORABLE.items() if trusted._is_object(item))


def found(path):
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)


def public(module, kind):
    classes = (getattr(module, name) for name in module.__all__)
    return [
        one
        for one in classes
        if inspect.isclass(one) and issubclass(one, kind) and not inspect.isabstract(one)
    ]


@pytest.mark.parametrize("path", OWN)
def test_restoring_a_trusted_class_runs_no_code_of_its_own(path):
    """Its dict of attributes is filled, and nothing else; a stack makes arrays read-only."""
    kind = found(path)
    own = [one for one in kind.__mro__ if one.__module__.startswith("manykernels.")]
    assert kind in own
    special = {name for one in own for name in vars(one)}
    assert not special & {"__new__", "__del__", "__slots__", "__getattr__"}
    assert not special & {"__getattribute__", "__reduce__", "__reduce_ex__", "__set__"}
    assert "__setstate__" not in special or kind is mk.KernelStack


def test_every_mark_is_found_by_its_name():
    assert len(OWN) > 100
    for path, item in STORABLE.items():
        assert found(path) is item
        if trusted._is_tuple(item):
            assert item.__bases__ == (tuple,)
        else:
            assert path in OWN or inspect.isfunction(item)


def test_a_subclass_is_not_marked():
    class Mine(kernels.RBF):
        pass

    assert path_of(Mine) not in trusted.objects()


def test_every_public_part_of_a_model_is_trusted():
    """Kernels of functions are not: a function cannot be stored; nor is the base of all gates."""
    parts = [getattr(mk, name) for name in mk.__all__ if hasattr(getattr(mk, name), "fit")]
    parts += public(baselines, object) + public(gating, object)
    parts += public(kernels, Kernel) + public(kernels, StackTransform)
    assert len(parts) > 50
    missing = {path_of(each) for each in parts} - set(OWN)
    assert missing - {path_of(CallableKernel)} == {path_of(gating.Gate)}


@pytest.mark.parametrize(
    "path",
    [
        *("os.system", "posix.system", "builtins.eval", "builtins.exec", "builtins.getattr"),
        *("subprocess.Popen", "operator.methodcaller", "functools.partial", "pickle.loads"),
        *("numpy.load", "numpy.fromfile", "numpy.memmap", "joblib.memory.Memory"),
        *(
            "manykernels.kernels.adapters.CallableKernel",
            "manykernels.kernels.operators.StoredArray",
        ),
        *("sklearn.tree._tree.Tree", "builtins.map", "builtins.open"),
    ],
)
def test_nothing_dangerous_is_trusted(path):
    names = [trusted.objects, trusted.tuples, trusted.functions, trusted.array_types]
    names += [trusted.named_types, trusted.sparse_matrices]
    assert not any(path in make() for make in names)


def test_what_is_called_makes_texts_numbers_and_containers():
    called = {*trusted.array_types(), *trusted.KEYS}
    assert {path.partition(".")[0] for path in called} == {"numpy", "builtins"}
    assert all(isinstance(found(path), type) for path in called)
