"""The code in README.md can be pasted, and what it links to is there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```$", README, flags=re.DOTALL | re.MULTILINE)


def test_there_is_code():
    assert BLOCKS


@pytest.mark.slow
@pytest.mark.parametrize("block", BLOCKS)
def test_code_runs(block, capsys):
    exec(compile(block, "README.md", "exec"), {"__name__": "__main__"})
    printed = capsys.readouterr().out
    # An example that is no better than guessing shows nothing.
    accuracy, guessing = re.search(
        r"accuracy ([\d.]+); always the same answer ([\d.]+)", printed
    ).groups()
    assert float(accuracy) > float(guessing) + 0.2
    assert len(block.splitlines()) <= 20


@pytest.mark.parametrize("target", re.findall(r"\]\((?!https?://|#)([^)]+)\)", README))
def test_links_lead_somewhere(target):
    assert (ROOT / target).exists()
