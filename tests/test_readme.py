"""The code in README.md can be pasted, and what it links to is there."""

import doctest
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(
    r"^```python\n(.*?)^```\n\n```text\n(.*?)^```$", README, flags=re.DOTALL | re.MULTILINE
)


def test_there_is_code():
    assert len(BLOCKS) == 1


@pytest.mark.slow
@pytest.mark.parametrize(("block", "printed"), BLOCKS)
def test_code_runs_and_prints_what_the_page_says(block, printed, capsys):
    exec(compile(block, "README.md", "exec"), {"__name__": "__main__"})
    flags = doctest.NORMALIZE_WHITESPACE
    assert doctest.OutputChecker().check_output(printed, capsys.readouterr().out, flags)
    assert len(block.splitlines()) <= 20


@pytest.mark.parametrize("target", re.findall(r"\]\((?!https?://|#)([^)]+)\)", README))
def test_links_lead_somewhere(target):
    assert (ROOT / target).exists()
