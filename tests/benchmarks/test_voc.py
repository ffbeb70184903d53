"""Norms for each object: printed figures, kernels, measurements and rows, on small problems."""

import numpy as np
import pytest

from benchmarks import _command, voc

KINDS, OF_EACH = 3, 15


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(KINDS), OF_EACH)
    views = [rng.standard_normal((len(y), 4)) + scale * np.eye(4)[y] for scale in (2.0, 1.0, 0.0)]
    return {f"view{k}": voc.cdist(X, X, "sqeuclidean") for k, X in enumerate(views)}, y


@pytest.fixture(scope="module")
def part(data):
    return voc.measured(*data, "flower17", quick=True)


def test_printed_means_are_those_of_the_papers():
    means = {
        ("Yan et al. 2010", "Table 2"): ([58.3, 59.8, 60.3, 60.3], [61.9, 61.9, 60.8, 62.6]),
        ("Yan et al. 2012", "Table 1"): ([58.3, 60.3, 60.3], [59.0, 60.8, 61.7]),
    }
    for paper, tables in voc.PRINTED.items():
        for norms, printed in zip(tables.values(), means[paper], strict=True):
            assert all(len(values) == 20 for values in norms.values())
            found = [float(np.mean(values)) for values in norms.values()]
            np.testing.assert_allclose(found, printed, atol=0.06)


def test_parts_have_every_kind_and_no_row_twice(data):
    _, y = data
    parts = voc.drawn(y, (6, 4, 5))
    assert [len(rows) for rows in parts] == [18, 12, 15]
    assert len(set(np.concatenate(parts))) == 45
    for rows in parts:
        assert len(set(np.bincount(y[rows]))) == 1


def test_kernels_have_the_width_of_the_training_rows(data):
    matrices, y = data
    train, _, test = voc.drawn(y, (6, 4, 5))
    _, others = voc.kernels_of(matrices, train, test)
    matrix = matrices["view1"]
    expected = np.exp(-matrix[np.ix_(test, train)] / matrix[np.ix_(train, train)].mean())
    np.testing.assert_allclose(others.kernel(1), expected, rtol=1e-12)


def test_every_machine_has_every_norm(part):
    assert set(part["machines"]) == set(voc.MACHINES)
    for one in part["machines"].values():
        assert {norm: len(values) for norm, values in one["precision"].items()} == dict.fromkeys(
            voc.NORMS, 2
        )
        assert len(one["test"]) == len(part["ps"]) == 3
        # At p = ∞ all kernels are used, at p = 1 no more.
        assert one["n_used"][-1] == 3
        assert one["n_used"][0] <= 3
    assert part["alignment"]["as they are"][1] > part["alignment"]["centred"][1]


def test_rows_are_differences_on_the_same_kinds():
    precision = {"ℓ1": [50.0, 60.0], "ℓ2": [55.0, 55.0], "ℓ∞": [60.0, 60.0], "ℓp": [54.0, 62.0]}
    higher = {norm: [one + 2.0 for one in values] for norm, values in precision.items()}
    machines = {voc.SVM: {"precision": precision}, voc.FDA: {"precision": higher}}
    paper = ("Yan et al. 2012", "Table 1")
    rows = {row.method: row for row in voc.rows_of(paper, "a set", {"machines": machines})}
    assert len(rows) == 7
    assert rows["MK-SVM: ℓp less ℓ1"].ours == 3.0
    assert rows["MK-SVM: ℓp less ℓ1"].theirs == pytest.approx(2.0, abs=0.06)
    # Differences of 4 and 2 points here; of two kinds that deviate by √2 the error is one.
    theirs = voc.PRINTED[paper][voc.SVM]
    deviation = np.std(theirs["ℓp"] - theirs["ℓ1"], ddof=1)
    assert rows["MK-SVM: ℓp less ℓ1"].error == pytest.approx((1 + deviation**2 / 20) ** 0.5)
    assert rows["MK-FDA less MK-SVM: ℓ∞"].ours == 2.0
    assert not any(row.same_data for row in rows.values())


def test_the_page(part, monkeypatch, tmp_path):
    monkeypatch.setattr(_command, "PAGES", tmp_path)
    _command.write_results("voc", {"flower17": part}, voc.page)
    page = (tmp_path / "voc.md").read_text(encoding="utf-8")
    assert "## Yan et al. 2010, Table 2" in page
    assert "18 + 12 + 15 pictures" in page
    assert len(voc.paper_rows(_command.read_results("voc"))) == 17


def test_missing_data_skip_the_set(monkeypatch, capsys):
    monkeypatch.delenv("MANYKERNELS_DATA", raising=False)
    assert voc.main(["--quick", "--sets", "scene15"]) == 1
    assert "Skipped: scene15." in capsys.readouterr().err
