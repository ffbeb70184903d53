"""Kernels under names: pairs, dicts and unions are the same, in every estimator."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from manykernels import (
    MKFDA,
    MKFDACV,
    MKSVC,
    MKSVR,
    KernelUnion,
    LocalizedFDA,
    LocalizedOneClassSVM,
    LocalizedSVC,
    LocalizedSVR,
    MKOneClassSVM,
)
from manykernels.baselines import KimFDA
from manykernels.kernels import RBF, Linear

M = 20
rng = np.random.default_rng(0)
X = rng.normal(size=(M, 3))
Y = (X[:, 0] > 0).astype(int)
DICT = {"line": Linear(), "wide": RBF(0.5)}
PAIRS = list(DICT.items())
KINDS = [
    *[MKFDA, MKFDACV, KimFDA, MKSVC, MKSVR, MKOneClassSVM],
    *[LocalizedFDA, LocalizedSVC, LocalizedSVR, LocalizedOneClassSVM],
]
every_kind = pytest.mark.parametrize("kind", KINDS)


def make(kind, kernels):
    localized = kind.__name__.startswith("Localized")
    return kind(kernels, **({"random_state": 0} if localized else {}))


@every_kind
def test_a_dict_is_a_list_of_pairs(kind):
    model, expected = make(kind, DICT).fit(X, Y), make(kind, PAIRS).fit(X, Y)
    assert model.kernel_names_ == ["line", "wide"]
    assert_array_equal(model.predict(X), expected.predict(X))
    assert not hasattr(DICT["wide"], "n_features_in_")


@every_kind
@pytest.mark.parametrize("form", [dict, list, tuple, KernelUnion])
def test_parameters_of_named_kernels(kind, form):
    model = make(kind, form(PAIRS))
    assert model.get_params()["kernels__wide__gamma"] == 0.5
    another = clone(model).set_params(kernels__wide__gamma=2.0)
    assert another.get_params()["kernels__wide__gamma"] == 2.0
    assert isinstance(another.kernels, list if form is tuple else form)
    assert model.get_params()["kernels__wide__gamma"] == 0.5
    assert DICT["wide"].gamma == 0.5
    replaced = clone(model).set_params(kernels__wide=Linear())
    assert isinstance(replaced.get_params()["kernels__wide"], Linear)


def test_a_search_over_a_kernel_of_a_dict():
    search = GridSearchCV(MKSVC(DICT), {"kernels__wide__gamma": [0.1, 1.0]}, cv=2).fit(X, Y)
    assert (
        search.best_estimator_.kernels["wide"].gamma == search.best_params_["kernels__wide__gamma"]
    )


def test_a_union_of_a_dict():
    union, expected = KernelUnion(DICT), KernelUnion(PAIRS)
    assert union.kernels is DICT
    assert union.get_params().keys() == expected.get_params().keys()
    assert clone(union).kernels.keys() == DICT.keys()
    stack = union.fit(X)(X)
    assert_array_equal(stack.data, expected.fit(X)(X).data)
    assert union.names_ == ["line", "wide"]
    assert union.subset([1]).names_ == ["wide"]
    other = clone(union).set_params(wide__gamma=3.0, line=RBF(1.0))
    assert other.kernels == {"line": other.kernels["line"], "wide": other.kernels["wide"]}
    assert (other.kernels["line"].gamma, other.kernels["wide"].gamma) == (1.0, 3.0)
    renamed = other.set_params(kernels={"one": RBF()}, one__gamma=4.0)
    assert renamed.get_params()["one__gamma"] == 4.0
    assert "wide" in union._repr_html_()


@pytest.mark.parametrize(
    ("kernels", "error", "message"),
    [
        ({}, ValueError, "pairs, at least one, or a dict; got"),
        ({1: RBF()}, ValueError, r"must be a pair \(name, kernel\), got \(1, RBF\(\)\)"),
        ({"a": 3}, TypeError, "kernel 'a': 3 is not a kernel"),
        ({"a__b": RBF()}, ValueError, "must not contain __"),
    ],
)
def test_dicts_that_are_no_kernels(kernels, error, message):
    for fit in (MKSVC(kernels).fit, lambda X, y: KernelUnion(kernels).fit(X)):
        with pytest.raises(error, match=message):
            fit(X, Y)


@every_kind
@pytest.mark.parametrize("kernels", [None, "precomputed", "rbf"])
def test_parameters_of_kernels_that_are_not_there(kind, kernels):
    model = make(kind, kernels)
    message = (
        rf"kernels__gamma cannot be set while kernels={kernels!r}, which has no parameters: pass "
        rf'kernels that have, such as {kind.__name__}\(\[\("rbf", RBF\(\)\), .*kernels__rbf__gamma'
    )
    with pytest.raises(ValueError, match=message):
        model.set_params(kernels__gamma=1.0)
    model.set_params(kernels=PAIRS, kernels__wide__gamma=3.0)
    assert model.get_params()["kernels__wide__gamma"] == 3.0
