"""What `show_versions` prints, for reports of problems."""

import platform
import tomllib
from pathlib import Path

import numpy
import sklearn

import manykernels

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]


def test_the_version_is_that_of_the_project():
    assert manykernels.__version__ == PROJECT["version"]


def test_everything_that_results_depend_on_is_shown(capsys):
    manykernels.show_versions()
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert f"manykernels: {manykernels.__version__}" in lines
    assert f"numpy: {numpy.__version__}" in lines
    assert f"scikit-learn: {sklearn.__version__}" in lines
    assert any(line.startswith(f"python: {platform.python_version()}") for line in lines)
    assert any(line.endswith("threads", 0, line.find(" (")) for line in lines if " (" in line)
    for dependency in PROJECT["dependencies"]:
        name = dependency.partition(">=")[0]
        assert any(line.startswith(f"{name}: ") for line in lines), name


def test_missing_packages_are_reported(capsys, monkeypatch):
    monkeypatch.setattr("manykernels.utils.versions._OPTIONAL", ("no-such-package",))
    manykernels.show_versions()
    assert "no-such-package: not installed" in capsys.readouterr().out
