"""demo: handwritten digits in views, as files, with a model, its report and what to try next."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from ..datasets import load_digit_views
from ..persistence import save
from .errors import DataError
from .fitting import say_fit, say_samples, write_report
from .methods import estimator_for
from .request import Request
from .samples import training_samples
from .talking import say, with_progress

# Images to learn from and to predict, and views of them: enough to see which view matters, and
# little enough for some seconds.
_TRAINING, _NEW = 120, 30
_VIEWS = ("rows", "columns", "noise1")
# Images that lack the second view, so that there are gaps to fill.
_GAPS = 15


def demo(folder: Path, *, force: bool) -> None:
    """Write files, fit a model on them, and say by which command."""
    if folder.exists() and not force:
        raise DataError(
            f"{str(folder)!r} is there already: --force replaces what demo wrote there."
        )
    if folder.exists() and not (folder / "labels.csv").is_file():
        raise DataError(f"{str(folder)!r} was not written by demo, and is left as it is.")
    parent = Path(os.path.realpath(folder)).parent
    if not parent.is_dir():
        raise DataError(f"There is no folder {str(parent)!r} for {str(folder)!r}.")
    draft = Path(tempfile.mkdtemp(prefix=".manykernels-", dir=parent))
    try:
        _write_tables(draft)
        _fit(draft, folder)
        if folder.exists():
            shutil.rmtree(folder)
        os.rename(draft, folder)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    say(f"\nAll of it is in {folder}: tables, model.skops, report.html. The same by hand:\n")
    say(f"  cd {folder}")
    for line in COMMANDS:
        say(f"  {line}")


#: What does the same by hand, in the folder.
COMMANDS = (
    "manykernels fit --spec digits.toml --output again.skops",
    "manykernels predict again.skops --view rows=new_rows.csv --view columns=new_columns.csv "
    "--output predictions.csv",
)


def _write_tables(folder: Path) -> None:
    """Views of digits as CSV, the digits beside them, and a specification."""
    views, digits = load_digit_views(noise=1)
    few = np.flatnonzero(digits < 4)[: _TRAINING + _NEW]
    labels = pd.Index([f"image{number:03d}" for number in range(len(few))], name="id")
    known, new = slice(0, _TRAINING), slice(_TRAINING, None)
    names = np.array(["zero", "one", "two", "three"])
    for name in _VIEWS:
        table = pd.DataFrame(np.round(views[name][few], 3), index=labels).add_prefix(f"{name}_")
        without = table.index[:_GAPS] if name == "columns" else []
        table[known].drop(index=without).to_csv(folder / f"{name}.csv")
        table[new].to_csv(folder / f"new_{name}.csv")
    targets = pd.Series(names[digits[few]], index=labels, name="digit")
    targets[known].to_csv(folder / "labels.csv")
    views_of_spec = "".join(f'{name} = "{name}.csv"\n' for name in _VIEWS)
    (folder / "digits.toml").write_text(
        f'index = "id"\ntarget = "labels.csv:digit"\nmissing = "mean"\n\n[views]\n{views_of_spec}',
        encoding="utf-8",
    )


def _fit(draft: Path, folder: Path) -> None:
    request = Request.of([], draft / "digits.toml")
    samples = training_samples(request)
    say_samples(request, samples)
    model = with_progress(estimator_for(request, samples)).fit(samples.X, samples.y)
    say_fit(model, samples)
    save(model, draft / "model.skops")
    write_report(model, samples, draft / "report.html")
