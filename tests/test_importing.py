"""Importing the package is light, and every name is there all the same."""

import subprocess
import sys
from importlib.util import find_spec
from types import ModuleType

import pytest

import manykernels
from manykernels import estimators

# What costs much time or memory, or belongs to an extra, and what `sklearn.linear_model` does not
# load: learning code of this package, solvers, compilers, pictures, tables, and heavy parts of
# scikit-learn.
HEAVY = {
    *("manykernels.estimators", "manykernels.comparison", "manykernels.inspection"),
    *("manykernels.solvers", "manykernels.gating", "manykernels.baselines"),
    *("clarabel", "cvxpy", "highspy", "numba"),
    *("anndata", "dask", "distributed", "jinja2", "matplotlib", "mudata", "pandas", "polars"),
    *("pyarrow", "rich", "skops", "typer"),
    *("sklearn.cluster", "sklearn.datasets", "sklearn.decomposition", "sklearn.ensemble"),
    *("sklearn.manifold", "sklearn.tree"),
    *("urllib.request", "zipfile"),
}


def loaded(statement):
    """Modules that an interpreter has after a statement."""
    code = f"{statement}\nimport sys\nprint(*sys.modules)"
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    return set(answer.stdout.split())


@pytest.fixture(scope="module")
def reference():
    return loaded("import sklearn.linear_model")


def test_nothing_heavy_at_start(reference):
    assert (loaded("import manykernels") - reference) & HEAVY == set()


@pytest.mark.slow
def test_an_estimator_loads_no_other_heavy_package(reference):
    found = (loaded("from manykernels import MKFDA") - reference) & HEAVY
    # The small solver of cones is part of the solvers of the papers, which are found by name.
    assert {name for name in found if not name.startswith("manykernels")} <= {"clarabel"}


def test_every_name_is_found_and_the_same_as_at_home():
    for name in manykernels.__all__:
        assert getattr(manykernels, name) is not None
    assert manykernels.MKFDA is estimators.MKFDA
    assert set(manykernels.__all__) <= set(dir(manykernels))
    assert set(estimators.__all__) & set(manykernels.__all__) == {
        name for name in estimators.__all__ if hasattr(manykernels, name)
    }


@pytest.mark.slow
def test_names_and_folders_in_a_new_interpreter():
    """Here all of them may have been imported by other tests."""
    assert "manykernels.estimators.fda" in loaded(
        "import sys\n"
        "import manykernels\n"
        "from manykernels.kernels import Denoise, KernelStack\n"
        "import numpy as np\n"
        "stack = KernelStack.from_arrays({'k': np.eye(12)})\n"
        "Denoise('cv').fit_transform(stack, np.arange(12) % 2)  # rules of manykernels.denoising\n"
        "assert 'MKFDA' in dir(manykernels) and 'MKFDA' not in vars(manykernels)\n"
        "assert 'manykernels.estimators' not in sys.modules\n"
        "manykernels.solvers.SOLVERS['newton']\n"
        "for name in manykernels._FOLDERS:\n"
        "    assert getattr(manykernels, name).__name__ == f'manykernels.{name}'\n"
        "from manykernels import *\n"
        "assert MKFDA is vars(manykernels)['MKFDA']\n"
        "compare, view_importance, Views, __version__\n"
    )


def test_what_does_not_exist_is_refused():
    with pytest.raises(AttributeError, match=r"module 'manykernels' has no attribute 'MKFDB'"):
        _ = manykernels.MKFDB
    with pytest.raises(ImportError, match="MKFDB"):
        exec("from manykernels import MKFDB")


def test_the_version_is_shown_without_the_imports_of_learning():
    found = loaded("from manykernels.cli import main\nmain(['--version'])")
    heavy = {*HEAVY, "numpy", "scipy", "sklearn", "manykernels.kernels"}
    assert found & (heavy - {"zipfile"}) == set()


def test_the_report_is_a_function_whatever_was_imported_before():
    code = (
        "import manykernels as mk, manykernels.reporting.html\n"
        "from manykernels import *\n"
        "print(callable(report), mk.report is report is mk.reporting.report)"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert answer.stdout.split() == ["True", "True"]


def test_no_public_name_is_a_module():
    for name in manykernels.__all__:
        assert not isinstance(getattr(manykernels, name), ModuleType), name
        assert find_spec(f"manykernels.{name}") is None, name
