"""Docstrings: what bases document is inherited, and nothing is left out."""

from __future__ import annotations

import inspect
import re

from manykernels.estimators.base import inherited
from tests.estimators.registry import every_estimator, every_variant, those


def documented(docstring):
    """Names at the beginning of a line: entries of the sections."""
    lines = re.findall(r"^(\w[\w, ]*?)(?: : .*)?$", docstring, re.MULTILINE)
    return {name for line in lines for name in line.split(", ")}


@every_estimator
def test_every_parameter_is_documented(entry):
    assert entry.parameters <= documented(entry.kind.__doc__)


@every_estimator
def test_parameters_are_listed_in_the_order_of_the_signature(entry):
    section = re.search(r"^Parameters\n-+\n(.*?)^Attributes$", entry.kind.__doc__, re.M | re.S)[1]
    listed = re.findall(r"^(\w+)(?: :|$)", section, re.M)
    assert listed == list(inspect.signature(entry.kind).parameters)
    assert listed[0] == "kernels"
    assert listed[-1] == "verbose"


@every_variant
def test_every_fitted_attribute_is_documented(entry):
    fitted = {name for name in vars(entry.fit()) if name.endswith("_")}
    assert fitted <= documented(entry.kind.__doc__)


# Attributes that depend on what is passed to ``fit``.
SOMETIMES = {"feature_names_in_", "n_labels_", "union_", "X_fit_", "support_vectors_", "groups_"}
# With an approximation.
SOMETIMES |= {"approximation_errors_", "landmarks_", "coef_", "left_out_rows_"}
# With sets of kernels.
SOMETIMES |= {"kernel_set_"}
# Of machines that are classifiers.
SOMETIMES |= {"classes_"}


@those(lambda entry: entry.target != "labels")
def test_no_attribute_is_documented_that_is_not_there(entry):
    model = entry.fit()
    promised = {name for name in documented(entry.kind.__doc__) if name.endswith("_")}
    assert {name for name in promised - SOMETIMES if not hasattr(model, name)} == set()


@those(lambda entry: entry.regional)
def test_weights_of_regions_are_documented_as_such(entry):
    assert "\nweights_ : ndarray of shape (n_regions, n_kernels)\n" in entry.kind.__doc__


@every_estimator
def test_what_fit_takes_is_documented(entry):
    taken = set(inspect.signature(entry.kind.fit).parameters) - {"self"}
    assert {"X", "y", "sample_weight"} <= taken
    assert documented(entry.kind.fit.__doc__) & {*taken, "groups"} == taken
    assert ("groups_" in documented(entry.kind.__doc__)) is ("groups" in taken)


def test_own_entries_come_first_and_count():
    own = """What it is.

    Parameters
    ----------
    b : int
        Mine.

    Examples
    --------
    >>> 1
    1
    """
    base = """Base.

    Parameters
    ----------
    a : int
    b : str
        Theirs,
        in two lines.
    c : float
        Third.
    """
    assert inherited(own, [base], {"Parameters": ["a"]}) == (
        "What it is.\n\nParameters\n----------\na : int\nb : int\n    Mine.\nc : float\n"
        "    Third.\n\nExamples\n--------\n>>> 1\n1\n"
    )
    assert inherited(None, [base], {"Parameters": []}) is None
