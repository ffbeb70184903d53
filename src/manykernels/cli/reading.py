"""Files of a request, read once each, and the labels by which their samples are matched."""

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from .console import DataError, listed, note
from .files import WITH_PARTS, Contents, ReadOptions, is_readable, read
from .request import Request, ViewRequest


class Reading:
    """Reader that reads each file of a request once.

    Labels of samples, in the column `index`, and the columns `texts` are read as text. Kernels
    have `n_columns`, or are square by default.
    """

    def __init__(
        self,
        request: Request,
        index: str | None,
        texts: Iterable[str] = (),
        n_columns: int | None = None,
    ) -> None:
        self.index = index
        self._n_columns = n_columns
        self._request = request
        self._texts = frozenset(texts) | ({index} if index is not None else set())
        self._known: dict[tuple[Path, str | None], Contents] = {}

    def contents(self, path: Path, part: str | None = None) -> Contents:
        """Return the contents of a file, with labels if there are any."""
        if (path, part) not in self._known:
            contents = self._read(path, part)
            self._known[path, part] = replace(contents, labels=self._labels(contents))
        return self._known[path, part]

    def _read(self, path: Path, part: str | None = None) -> Contents:
        transpose = path in self._request.transposed
        encoding = self._request.encoding
        return read(path, ReadOptions(part, self._texts, encoding, transpose, self._n_columns))

    def of(self, view: ViewRequest) -> Contents:
        """Return the contents of the file of a view."""
        with_parts = view.file.suffix.lower() in WITH_PARTS and view.columns
        return self.contents(view.file, view.columns[0] if with_parts and view.columns else None)

    def _labels(self, contents: Contents) -> pd.Index | None:
        name = str(contents.path)
        columns = contents.columns.columns
        if self.index is None or (self.index not in columns and contents.labels is not None):
            labels = contents.labels
        elif self.index not in columns and contents.matrices is not None:
            raise DataError(
                f"{name!r} has no names of samples: write the kernels into an .npz or .mat file, "
                f"with the names in an array {self.index!r}."
            )
        elif self.index not in columns:
            raise DataError(
                f"{name!r} has no column {self.index!r} to match samples by; it has "
                f"{listed(columns)}.{self._advice_to_transpose(contents)}"
            )
        else:
            column = contents.columns[self.index]
            empty = np.flatnonzero(column.isna())
            if len(empty):
                raise DataError(f"{name!r} has no {self.index} in row {empty[0] + 1}.")
            labels = pd.Index([str(label).strip() for label in column])
        if labels is None:
            return None
        rules = self._request.match_ids
        labels = pd.Index([matched(label, rules) for label in labels], name=self.index)
        if labels.has_duplicates and (rules or self.index in columns):
            duplicate = labels[labels.duplicated()][0]
            end = f", with --match-ids {','.join(rules)}" if rules else ""
            raise DataError(
                f"{name!r} has several rows whose {self.index or 'id'} is {duplicate!r}{end}."
            )
        return labels

    def _advice_to_transpose(self, contents: Contents) -> str:
        """Return advice if columns of a file are samples of another file, or a row the target."""
        if any(names_row(contents, column.name) for column in self._request.columns):
            return " If it has a column per sample, pass --transpose."
        for path in self._request.files:
            if path == contents.path or not is_readable(path):
                continue
            with suppress(DataError):
                columns = self._read(path).columns
                if self.index in columns:
                    ids = {str(label).strip() for label in columns[self.index]}
                    if advice := _advice_to_transpose(contents, ids, path, self._request):
                        return f" {advice}"
        return ""


# -- labels that differ ----------------------------------------------------------------------


def matched(label: Any, rules: Sequence[str]) -> str:
    """Return a label in the form by which samples are matched under the rules."""
    text = str(label)
    if "case" in rules:
        text = text.casefold()
    if "number" in rules:
        # 007 and 7.0 are 7, s007 is s7.
        if re.fullmatch(r"[-+]?\d+\.\d*", text):
            text = text.rstrip("0").rstrip(".")
        text = re.sub(r"(?<![\d.])0+(?=\d)", "", text)
    return text


def names_row(contents: Contents, name: str) -> bool:
    """Return whether the first column of a table, which may name features, has a name."""
    return bool(contents.columns.size) and name in contents.columns.iloc[:, 0].to_list()


def check_labels(files: Iterable[Contents], request: Request, *, lacking: bool) -> None:
    """Raise if two files share no label, or print a note of others that look the same.

    With `lacking`, samples may lack a view, and files with other labels are accepted unless their
    labels look the same but for how they are written.
    """
    by_path = {file.path: (file, file.labels) for file in files if file.labels is not None}
    for (first, labels), (second, others) in combinations(by_path.values(), 2):
        n_shared = len(labels.intersection(others))
        fewest = min(len(labels), len(others))
        paths = f"{str(first.path)!r} and {str(second.path)!r}"
        advice = _advice_on_labels(labels.difference(others), others.difference(labels))
        if not advice and 2 * n_shared < fewest:
            advice = _advice_to_transpose(
                first, set(others), second.path, request
            ) or _advice_to_transpose(second, set(labels), first.path, request)
        if n_shared:
            if advice:
                note(f"{paths} share {n_shared} of {fewest} ids. {advice}")
        elif advice or not lacking:
            raise DataError(
                f"{paths} share no id: {listed(labels[:3])} and {listed(others[:3])}. "
                + (advice or "Check that --index names the column with the same ids in all files.")
            )


def _advice_on_labels(first: pd.Index, second: pd.Index) -> str:
    """Return advice if labels that two files do not share look the same in another writing."""
    fewest = min(len(first), len(second))
    for rules in (("case",), ("number",), ("case", "number")):
        forms = [{matched(label, rules) for label in labels} for labels in (first, second)]
        n_same = len(forms[0] & forms[1])
        if n_same and 2 * n_same >= fewest:
            texts = [str(label) for label in [*first, *second]]
            kinds = {
                "upper and lower case": "case" in rules,
                "leading zeros": "number" in rules
                and any(re.search(r"(?<![\d.])0\d", text) for text in texts),
                "decimals, such as .0": "number" in rules
                and any(re.fullmatch(r"[-+]?\d+\.0*", text) for text in texts),
            }
            differing = " and ".join(kind for kind, differs in kinds.items() if differs)
            return (
                f"{n_same} ids look the same but for {differing}: pass "
                f"--match-ids {','.join(rules)}."
            )
    return ""


def _advice_to_transpose(contents: Contents, ids: set[str], path: Path, request: Request) -> str:
    """Return advice if at least half of the columns of a file are `ids` of the file `path`."""
    rules = ("case", "number")  # the ids may be written differently, too
    header = [str(name) for name in contents.columns.columns]
    forms = {matched(label, rules) for label in ids}
    same = [name for name in header if matched(name, rules) in forms]
    if contents.path in request.transposed or not same or 2 * len(same) < len(header) - 1:
        return ""
    views = [view.name for view in request.views if view.file == contents.path]
    return (
        f"Columns of {str(contents.path)!r}, such as {same[0]!r}, are ids of {str(path)!r}: if "
        f"it has a column per sample, pass --transpose {views[0] if views else 'all'}."
    )
