"""Examples of the help and of the documentation run, in order, as a newcomer would."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

import pytest

import manykernels.reporting
from tests.cli.conftest import Stub

PAGE = (Path(__file__).parents[2] / "docs" / "command_line.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(console|python|toml)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
COMMANDS = ("fit", "predict", "inspect", "importance", "compare", "demo")


# -- help ------------------------------------------------------------------------------------


def examples(text):
    """Command lines of a help text, with those that go on in the next line put together."""
    joined = re.sub(r"\\\n\s*", "", text)
    return re.findall(r"^\s+manykernels (.*)$", joined, re.MULTILINE)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_an_example(run, command):
    code, out, _ = run(command, "--help")
    assert code == 0
    assert any(line.startswith(command) for line in examples(out))


def run_examples(run, commands):
    lines = []
    for command in commands:
        lines += examples(run(command, "--help")[1])
    assert len(lines) >= len(commands)
    for line in lines:
        code, out, err = run(*shlex.split(line))
        assert code == 0, f"{line}: {err}"
        assert out


def test_examples_of_help_run(folder, run, one_point):
    run_examples(run, ("fit", "predict", "inspect"))
    assert set(examples(run("--help")[1])) >= {"demo"}


@pytest.mark.slow
def test_examples_of_help_run_as_they_are(folder, run):
    run_examples(run, COMMANDS)


# -- the page --------------------------------------------------------------------------------


def steps(block):
    """Commands and what is shown below each."""
    joined = re.sub(r"\\\n\s*", "", block)
    for part in re.split(r"^\$ ", joined, flags=re.MULTILINE)[1:]:
        command, *shown = part.rstrip("\n").split("\n")
        yield command, shown


def loose(line):
    """A pattern: any number for a number, any bar for a bar, anything for three dots."""
    pattern = re.escape(" ".join(line.split()))
    pattern = re.sub(r"\\?[+-]?\d+(\\\.\d+)?(e\\?[+-]\d+)?\*?", r"[-+]?[\\d.e+-]+\\*?", pattern)
    pattern = re.sub("█+", "█*", pattern).replace("p\\ =\\ inf", "p\\ =\\ .*")
    return pattern.replace("…", ".*").replace("\\ ", r"\s*")


def assert_shown(shown, said):
    """Lines of the page occur in this order in what was said."""
    lines = [" ".join(line.split()) for line in said.splitlines()]
    place = 0
    for line in shown:
        if line == "…":
            continue
        found = [
            number
            for number in range(place, len(lines))
            if re.fullmatch(loose(line), lines[number])
        ]
        assert found, f"{line!r} is not in\n{said}"
        place = found[0] + 1


def do(command, run):
    """What a command says, and its exit code; of shells, what the page needs."""
    words = shlex.split(command)
    if words[0] == "cd":
        os.chdir(words[1])
        return 0, ""
    if words[0] == "head":
        lines = Path(words[2]).read_text().splitlines()
        return 0, "\n".join(lines[: -int(words[1])])
    assert words[0] == "manykernels"
    code, out, err = run(*words[1:])
    return code, out + err


def run_page(run, capsys, compare):
    n_commands = 0
    for kind, block in BLOCKS:
        if kind == "toml":
            Path("spec.toml").write_text(block)
        elif kind == "python":
            exec(compile(block, "command_line.md", "exec"), {"__name__": "__main__"})
            assert ("certified" in capsys.readouterr().out) == ("certificate_" in block)
        else:
            for command, shown in steps(block):
                code, said = do(command, run)
                refused = bool(shown) and shown[0].startswith("manykernels: ")
                assert code == int(refused), said
                compare(shown, said)
                n_commands += 1
    assert n_commands >= 10
    assert Path("digits.html").exists()


@pytest.fixture
def empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return monkeypatch


@pytest.mark.slow
def test_the_page_runs(empty_folder, run, capsys, one_point):
    """What a search of one point says is not what the page shows."""
    empty_folder.setattr(manykernels.reporting, "report", Stub, raising=False)
    run_page(run, capsys, lambda shown, said: None)


@pytest.mark.slow
def test_the_page_runs_and_says_what_it_shows(empty_folder, run, capsys):
    """With the report itself."""
    run_page(run, capsys, assert_shown)
    assert "<html" in Path("digits.html").read_text(encoding="utf-8")
