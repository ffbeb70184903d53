"""Stacks, views and estimators as notebooks show them."""

import base64
import struct
import zlib

import numpy as np
import pytest
import sklearn
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_html_repr

from manykernels import MKFDA, MKFDACV, KernelStack, Views
from manykernels.estimators.base import learnt_html
from manykernels.kernels import RBF
from tests.estimators.registry import TABLE, every_estimator
from tests.reporting.pages import HOSTILE, Page, views_and_classes


def cells(html):
    """Rows of the tables, as the texts of their cells."""
    return [Page(row.split("</tr>")[0]).text for row in html.split("<tr>")[1:]]


def decoded(source):
    """Pixels of an image without filters, as `kernels/stack.py` writes it."""
    data = base64.b64decode(source.removeprefix("data:image/png;base64,"))
    width, height = struct.unpack(">II", data[16:24])
    start = data.index(b"IDAT")
    (length,) = struct.unpack(">I", data[start - 4 : start])
    lines = np.frombuffer(zlib.decompress(data[start + 4 : start + 4 + length]), np.uint8)
    return lines.reshape(height, 1 + 4 * width)[:, 1:].reshape(height, width, 4)


# -- stacks ----------------------------------------------------------------------------------


def test_a_stack_has_a_line_for_every_kernel():
    first = np.array([[2.0, 0.5], [0.5, 4.0]])
    stack = KernelStack.from_arrays([first, np.eye(2)], ["a", "b"]).with_views(["x", "y"])
    html = stack._repr_html_()
    header, row, _ = cells(html)
    assert header == ["kernel", "view", "mean", "least", "most", "mean k(x, x)"]
    assert row == ["a", "x", "1.75", "0.5", "4", "3"]
    image = Page(html).of("img")[0]
    assert image["alt"] == "values from 0.5 to 4"
    np.testing.assert_array_equal(decoded(image["src"])[..., 3], [[109, 0], [0, 255]])


def test_a_large_stack_is_not_read_as_a_whole():
    stack = KernelStack(np.ones((40, 300, 250)), [f"k{j}" for j in range(40)])
    html = stack._repr_html_()
    assert len(cells(html)) == 31
    assert "10 more kernels." in html
    assert "Values of 200 × 200 entries." in html
    assert Page(html).of("img") == []


@pytest.mark.parametrize("shape", [(0, 5), (5, 0)])
def test_an_empty_stack(shape):
    stack = KernelStack(np.ones((2, *shape)), ["a", "b"])
    assert cells(stack._repr_html_())[1] == ["a", "–", "–", "–", "–"]


def test_gaps_are_no_values():
    matrix = np.array([[1.0, np.nan], [np.nan, np.nan]])
    html = KernelStack.from_arrays([matrix], missing=True)._repr_html_()
    assert cells(html)[1] == ["kernel0", "1", "1", "1", "1"]


# -- views -----------------------------------------------------------------------------------


def test_views_tell_their_columns_and_gaps():
    tables = {"a": np.ones((3, 4)), "b": np.array([[1.0], [np.nan], [2.0]]), "c": ["x", "y", "z"]}
    html = Views(tables)._repr_html_()
    assert "3 rows, 3 views" in html
    rows = cells(html)
    assert rows[1] == ["a", "ndarray", "4", "3", "0"]
    assert rows[2] == ["b", "ndarray", "1", "2", "1"]
    assert rows[3][2:] == ["1", "3", "0"]


# -- estimators ------------------------------------------------------------------------------


@every_estimator
def test_every_estimator_shows_what_it_has_learnt(entry):
    assert learnt_html(entry.make()) == ""
    model = entry.fit(TABLE)
    html = model._repr_html_()
    assert "sk-top-container" in html
    assert f"{entry.name} has learnt:" in html
    rows = cells(learnt_html(model))
    assert {row[0] for row in rows[1:]} == set(model.kernel_names_)
    shares = [float(row[1].rstrip("%")) for row in rows[1:]]
    assert shares == sorted(shares, reverse=True)
    assert sum(shares) == pytest.approx(100.0, abs=0.2)


def test_the_certificate_is_reported():
    tables, y = views_and_classes()
    model = MKFDA(RBF()).fit(tables, y)
    assert str(model.certificate_) in model._repr_html_()


def test_diagrams_of_others_stay_as_they_are():
    tables, y = views_and_classes()
    X = tables["strong"]
    pipeline = make_pipeline(StandardScaler(), MKFDA(RBF())).fit(X, y)
    assert "has learnt" not in estimator_html_repr(pipeline)
    with sklearn.config_context(display="text"):
        assert not hasattr(pipeline[-1], "_repr_html_")


def test_names_are_data():
    tables, y = views_and_classes(names=HOSTILE)
    model = MKFDACV(RBF(), ps=[2], regs=[1.0]).fit(tables, y)
    shown = [Views(tables)._repr_html_(), model.union_(tables)._repr_html_()]
    for page in map(Page, [learnt_html(model), *shown]):
        assert page.of("script") == []
        assert all(one["src"].startswith("data:image/png") for one in page.of("img"))
        assert HOSTILE[0] in "".join(page.text)
        assert max(map(len, page.text)) < 300
