"""Files for a release agree: workflows, Makefile, pyproject.toml, citation, conda recipe."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

import manykernels

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
PATHS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
WORKFLOWS = {path.stem: yaml.safe_load(path.read_text()) for path in PATHS}


def matrix_of(job):
    return job.get("strategy", {}).get("matrix", {})


def commands(job):
    """Return the commands of a job, one for each value of its matrix."""
    lines = [step["run"] for step in job.get("steps", []) if "run" in step]
    for name, values in matrix_of(job).items():
        place = f"${{{{ matrix.{name} }}}}"
        lines = [line.replace(place, str(value)) for line in lines for value in values]
    return lines


def made(workflow):
    """Return the targets that a workflow makes."""
    lines = [line for job in WORKFLOWS[workflow]["jobs"].values() for line in commands(job)]
    return {target for line in lines for target in re.findall(r"\bmake (\S+)", line)}


def recipe():
    """Return the conda recipe in the documentation."""
    page = (ROOT / "docs" / "releasing.md").read_text(encoding="utf-8")
    return yaml.safe_load(re.search(r"^```yaml\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)[1])


@pytest.mark.parametrize("workflow", WORKFLOWS)
def test_targets_of_workflows_exist(workflow):
    assert made(workflow) <= TARGETS


def test_workflows_run_the_gate():
    gate = set(re.findall(r"\bmake (\S+)", (ROOT / ".ci" / "run").read_text()))
    assert len(gate) > 3
    assert gate | {"test-oldest", "package"} <= made("tests")


def test_classifiers_are_the_versions_of_python_that_are_tested():
    prefix = "Programming Language :: Python :: 3."
    stated = [name.rpartition(" ")[2] for name in PROJECT["classifiers"] if prefix in name]
    jobs = WORKFLOWS["tests"]["jobs"]
    assert matrix_of(jobs["test"])["python"] == stated
    assert PROJECT["requires-python"] == f">={stated[0]}"
    oldest = [step["with"] for step in jobs["oldest"]["steps"] if "with" in step]
    assert oldest == [{"python-version": stated[0]}]
    support = (ROOT / "docs" / "support.md").read_text(encoding="utf-8")
    assert f"| Python | {', '.join(stated)} |" in support


def test_what_is_published_was_tested():
    release = WORKFLOWS["release"]["jobs"]
    assert release["tests"]["uses"] == "./.github/workflows/tests.yml"
    assert release["publish"]["needs"] == "tests"
    downloaded = [step for step in release["publish"]["steps"] if "download" in str(step)]
    uploaded = WORKFLOWS["tests"]["jobs"]["package"]["steps"][-1]
    assert [step["with"]["name"] for step in downloaded] == [uploaded["with"]["name"]]


def test_every_dependency_that_test_oldest_installs_has_a_minimum():
    extras = PROJECT["optional-dependencies"]
    chosen = PROJECT["dependencies"] + [
        name for extra in ("test", "cli", "dask", "io", "report") for name in extras[extra]
    ]
    assert not [name for name in chosen if ">=" not in name and "manykernels[" not in name]


def test_the_citation_is_of_this_version():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == manykernels.__version__
    assert citation["license"] == PROJECT["license"]


def test_the_conda_recipe_is_of_this_version():
    stated = recipe()
    assert stated["context"]["version"] == manykernels.__version__
    assert f">={stated['context']['python_min']}" == PROJECT["requires-python"]
    needed = [line.replace(" ", "") for line in stated["requirements"]["run"]]
    assert needed[1:] == PROJECT["dependencies"]
    (command,) = stated["build"]["python"]["entry_points"]
    assert dict([command.split(" = ")]) == PROJECT["scripts"]


def test_links_of_the_summary_for_language_models_lead_somewhere():
    text = (ROOT / "docs" / "llms.txt").read_text(encoding="utf-8")
    links = re.findall(r"\]\((\S+)\.html\)", text)
    assert links
    assert [link for link in links if not (ROOT / "docs" / f"{link}.md").exists()] == []
    for block in re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        compile(block, "llms.txt", "exec")
    names = re.findall(r"`(MK\w+)`", text)
    assert set(names) <= set(manykernels.__all__)
