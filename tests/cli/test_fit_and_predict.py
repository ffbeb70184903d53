"""fit and predict do what Python does, and say what they did."""

import io
import json
import sys
import zipfile

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.io import savemat

import manykernels as mk
from manykernels.cli import main
from manykernels.cli.commands import largest
from manykernels.cli.files import divided
from manykernels.cli.outputs import without_formulas
from manykernels.kernels import RBF, KernelStack
from tests.cli.conftest import BOTH, QUICK, N, frames, patients
from tests.problems import slow


def test_the_model_is_that_of_python(folder, run):
    code, out, err = run("fit", *BOTH, "--output", "model.skops")
    assert (code, err) == (0, "")
    assert "40 samples, target 'label': 2 classes" in out
    assert "certified: " in out
    assert "model written to model.skops" in out
    a, b, label = frames()
    same = mk.MKFDACV(ps=[2], regs=[1]).fit({"a": a[:N], "b": b[:N]}, label[:N])
    found = mk.load("model.skops")
    assert_allclose(found.weights_, same.weights_, rtol=1e-6)
    code, _, _ = run(
        *("predict", "model.skops", "--view", "a=a_new.csv", "--view", "b=b_new.csv"),
        *("--output", "new.csv"),
    )
    assert code == 0
    table = pd.read_csv("new.csv", dtype={"id": str}).set_index("id")
    assert list(table.index) == list(a.index[N:])
    expected = same.predict_proba({"a": a[N:], "b": b[N:]})
    assert_allclose(table[["probability_ill", "probability_well"]], expected, rtol=1e-6)
    assert_array_equal(table["prediction"], same.predict({"a": a[N:], "b": b[N:]}))


def test_a_kernel_for_each_set(folder, run):
    code, out, err = run("fit", *BOTH, "--sets", "a=sets.gmt", "--output", "model.skops")
    assert (code, err) == (0, "")
    assert "weights of sets:" in out
    a, b, label = frames()
    sets = {"FIRST": ["x"], "BOTH": ["x", "y"]}
    kernels = {"a": mk.kernels_of_sets(a, sets), "b": None}
    same = mk.MKFDACV(kernels, ps=[2], regs=[1]).fit({"a": a[:N], "b": b[:N]}, label[:N])
    model = mk.load("model.skops")
    assert model.kernel_names_[:2] == ["a:FIRST", "a:BOTH"]
    assert_allclose(model.weights_, same.weights_, rtol=1e-6)
    new = ("--view", "a=a_new.csv", "--view", "b=b_new.csv", "--output", "new.csv")
    assert run("predict", "model.skops", *new)[0] == 0
    expected = same.predict({"a": a[N:], "b": b[N:]})
    assert_array_equal(pd.read_csv("new.csv")["prediction"], expected)


def test_sets_in_a_specification_and_their_importance(folder, run):
    folder.joinpath("spec").mkdir()
    text = 'index = "id"\ntarget = "label"\nsets = "../sets.gmt"\n[views]\na = "../a.csv"\n'
    folder.joinpath("spec", "sets.toml").write_text(text)
    code, out, _ = run("importance", "--spec", "spec/sets.toml", *QUICK, "--resamples", "0")
    assert code == 0
    assert "a:FIRST" in out
    assert "a:BOTH" in out


def test_the_weights_of_many_sets_are_folded():
    shares = [(f"set{number}", number / 300) for number in range(25)]
    bars = largest(shares)
    assert bars[0] == shares[-1]
    assert len(bars) == 21
    assert bars[-1][0] == "5 others, their sum"
    assert_allclose(sum(share for _, share in bars), 1.0)


def test_predictions_of_samples_left_out(folder, run):
    code, out, _ = run("fit", *BOTH, "--output", "m.skops", "--predictions", "left.csv")
    assert code == 0
    model, table = mk.load("m.skops"), pd.read_csv("left.csv")
    assert_allclose(np.log(table["probability_ill"]), model.left_out_log_proba_[:, 0], rtol=1e-6)
    assert set(table["target"]) == {"ill", "well"}
    assert "predictions written to left.csv" in out


def test_numbers_are_a_regression(folder, run):
    options = ("--index", "id", *QUICK, "--predictions", "left.csv")
    code, out, _ = run(
        "fit", "--view", "b=b.csv:age", "--target", "a.csv:x", "--output", "m.skops", *options
    )
    assert code == 0
    assert "numbers from" in out
    assert "R²" in out
    assert isinstance(mk.load("m.skops"), mk.MKRidgeCV)
    assert list(pd.read_csv("left.csv")) == ["id", "target", "prediction"]


def test_support_vectors(folder, run):
    options = [*BOTH[:-2], "--machine", "svm", "--C", "1"]
    code, out, _ = run("fit", *options, "--output", "m.skops")
    assert code == 0
    assert "MKSVCCV" in out
    code, out, _ = run("predict", "m.skops", "--view", "a=a_new.csv", "--view", "b=b_new.csv")
    assert code == 0
    assert out.startswith("id,prediction,probability_ill,probability_well\n")


@pytest.mark.parametrize("missing", ["mean", *slow("conditional")])
def test_samples_that_lack_a_view(folder, run, missing):
    options = ("--view", "a=a.csv", "--view", "b=gaps.csv", "--index", "id", "--target", "label")
    code, _, err = run("fit", *options, *QUICK, "--output", "m.skops")
    assert code == 1
    assert "View 'b' lacks 5 of 40 samples: '000', '001'" in err
    assert "--missing mean" in err
    code, out, _ = run("fit", *options, *QUICK, "--output", "m.skops", "--missing", missing)
    assert code == 0
    assert "5 samples lack it" in out
    code, out, _ = run("predict", "m.skops", "--view", "a=a_new.csv")
    assert code == 0
    assert len(out.splitlines()) == 11


def test_empty_cells(folder, run):
    text = (folder / "a.csv").read_text().splitlines()
    number, _, y, label = text[3].split(",")
    text[3] = f"{number},,{y},{label}"
    (folder / "holes.csv").write_text("\n".join(text))
    options = ("--view", "a=holes.csv", "--view", "b=b.csv", *BOTH[4:])
    code, _, err = run("fit", *options, "--output", "m.skops")
    assert code == 1
    assert "column 'x' of '002'" in err
    assert "--impute" in err
    code, _, _ = run("fit", *options, "--output", "m.skops", "--impute")
    assert code == 0
    code, out, _ = run("predict", "m.skops", "--view", "a=holes.csv", "--view", "b=b.csv")
    assert code == 0
    assert "nan" not in out


def test_columns_and_kernels(folder, run):
    view = ("--view", "a=a.csv:y:rbf(gamma=0.5):linear")
    code, _, _ = run("fit", *view, *BOTH[4:], "--output", "m.skops")
    assert code == 0
    model = mk.load("m.skops")
    assert model.kernel_names_ == ["a:rbf", "a:linear"]
    assert list(model.X_fit_["a"].columns) == ["y"]
    assert dict(model.union_.kernels)["a:rbf"].kernel.gamma == RBF(0.5).gamma


def test_a_specification(folder, run):
    code, out, _ = run("fit", "--spec", "model.toml", "--output", "m.skops")
    assert code == 0
    assert "p = 2, λ = 1" in out
    code, out, _ = run("fit", "--spec", "model.toml", "--p", "1", "--output", "n.skops")
    assert code == 0
    assert "p = 1, λ = 1" in out


def test_by_order_of_rows_without_an_index(folder, run):
    a, b, label = frames()
    a.assign(label=label)[:N].to_parquet("a.parquet", index=False)
    b[:N].to_csv("b.tsv", sep="\t", index=False)
    views = ("--view", "a=a.parquet", "--view", "b=b.tsv", "--target", "label")
    code, _, _ = run("fit", *views, *QUICK, "--output", "m.skops")
    assert code == 0
    code, out, _ = run("predict", "m.skops", "--view", "a=a.parquet", "--view", "b=b.tsv")
    assert code == 0
    assert out.splitlines()[1].startswith("0,")
    b[: N - 1].to_csv("b.tsv", sep="\t", index=False)
    code, _, err = run("fit", *views, *QUICK, "--output", "n.skops")
    assert code == 1
    assert "'a.parquet' has 40 rows and 'b.tsv' 39" in err
    assert "--index" in err


@pytest.mark.parametrize("how", ["nystrom:10", *slow("random:60")])
def test_features_in_place_of_kernels(folder, run, how):
    view = ("--view", "a=a.csv:rbf", *BOTH[4:], "--output", "m.skops")
    code, _, err = run("fit", *view, "--approximation", how)
    assert code == 0, err
    assert mk.load("m.skops").approximation_errors_.shape == (1,)
    code, out, _ = run("predict", "m.skops", "--view", "a=a_new.csv")
    assert code == 0
    assert out.splitlines()[1].startswith("040,")


def test_columns_that_look_odd(folder, run):
    a, _, label = frames()
    a.assign(label=label, z=None)[:N].to_csv("a.csv")
    code, _, err = run("fit", "--view", "a=a.csv", *BOTH[4:], "--output", "m.skops")
    assert code == 0
    assert "empty columns of view 'a' are ignored: 'z'" in err
    a.set_axis([f"P{i}" for i in range(len(a))]).assign(label=label.to_numpy()).to_csv(
        "a.csv", index_label="name"
    )
    options = ("--view", "a=a.csv", "--target", "label", *QUICK, "--output", "n.skops")
    code, _, err = run("fit", *options)
    assert code == 1
    assert "column 'name' of view 'a' is text, and 50 of 50 entries are different" in err
    assert "column 'name' of view 'a' has a different text in every row" in err
    assert "--index name" in err


def kernels():
    a, _, label = frames()
    X = a.to_numpy()
    linear = X @ X.T
    gauss = np.exp(-((X[:, None] - X) ** 2).sum(axis=2))
    return {"linear": linear, "gauss": gauss}, a.index.to_numpy(str), label.to_numpy(str)


@pytest.mark.parametrize("ending", ["npz", *slow("mat")])
def test_ready_made_kernels(folder, run, ending):
    matrices, names, label = kernels()
    train = {name: K[:N, :N] for name, K in matrices.items()}
    test = {name: K[N:, :N] for name, K in matrices.items()}
    write = np.savez if ending == "npz" else lambda path, **arrays: savemat(path, arrays)
    kind = str if ending == "npz" else object
    write(f"train.{ending}", **train, id=names[:N].astype(kind), label=label[:N].astype(kind))
    write(f"test.{ending}", **test, id=names[N:].astype(kind))
    options = ("--index", "id", "--target", "label", *QUICK, "--output", "m.skops")
    code, out, _ = run("fit", "--view", f"k=train.{ending}", *options)
    assert code == 0
    assert "2 kernels: linear, gauss" in out
    code, out, _ = run("predict", "m.skops", "--view", f"k=test.{ending}", "--index", "id")
    assert code == 0
    same = mk.MKFDACV("precomputed", ps=[2], regs=[1]).fit(train, label[:N])
    found = [line.split(",")[:2] for line in out.splitlines()[1:]]
    assert found == [list(pair) for pair in zip(names[N:], same.predict(test), strict=True)]


@pytest.mark.parametrize("ending", ["npy", "npz"])
@pytest.mark.parametrize("axis", [0, 2])
def test_ready_made_kernels_in_one_array(folder, run, ending, axis):
    matrices, _, label = kernels()
    train = np.stack([K[:N, :N] for K in matrices.values()], axis)
    test = np.stack([K[N:, :N] for K in matrices.values()], axis)
    for name, array in {"train": train, "test": test}.items():
        if ending == "npy":
            np.save(f"{name}.npy", array)
        else:
            np.savez(f"{name}.npz", K=array)
    options = ("--target", "a.csv:label", *QUICK, "--output", "m.skops")
    code, out, err = run("fit", "--view", f"k=train.{ending}", *options)
    assert code == 0, err
    name = "kernel" if ending == "npy" else "K"
    assert f"2 kernels: {name}_0, {name}_1" in out
    code, out, err = run("predict", "m.skops", "--view", f"k=test.{ending}")
    assert code == 0, err
    same = mk.MKFDACV("precomputed", ps=[2], regs=[1])
    same.fit({name: K[:N, :N] for name, K in matrices.items()}, label[:N])
    expected = same.predict({name: K[N:, :N] for name, K in matrices.items()})
    assert [line.split(",")[1] for line in out.splitlines()[1:]] == list(expected)
    np.save("odd.npy", test[:, :9] if axis else test[:, :, :9])
    code, _, err = run("predict", "m.skops", "--view", "k=odd.npy")
    assert code == 1
    assert "must be (kernels, rows, columns) or (rows, columns, kernels), with 40 columns" in err
    code, _, err = run("fit", "--view", "k=odd.npy", *options, "--force")
    assert code == 1
    assert "or (rows, columns, kernels), with square kernels" in err


def test_as_many_kernels_as_samples():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(4, 4, 4))
    stack = A + A.swapaxes(1, 2)
    for axis in (0, 2):
        found = divided(np.moveaxis(stack, 0, axis), "K")
        assert list(found) == ["K_0", "K_1", "K_2", "K_3"]
        assert_array_equal(list(found.values()), stack)


def test_sequences(folder, run):
    rng = np.random.default_rng(0)
    a, _, _ = frames()
    records = [f">{name} unknown\n{''.join(rng.choice(list('ACGT'), 30))}\n" for name in a.index]
    (folder / "s.fasta").write_text("".join(records))
    options = ("--index", "id", "--target", "label", *QUICK, "--output", "m.skops")
    code, out, err = run("fit", "--view", "a=a.csv", "--view", "s=s.fasta:spectrum(k=2)", *options)
    assert code == 0
    assert "view s: sequences" in out
    assert "10 samples without 'label' are left out" in err
    code, out, _ = run("predict", "m.skops", "--view", "a=a_new.csv", "--view", "s=s.fasta")
    assert code == 1  # the model needs all views of every sample


# -- odd texts -------------------------------------------------------------------------------


@pytest.fixture
def odd_texts(folder):
    """Labels, classes and a column with what terminals obey and what spreadsheets compute."""
    rng = np.random.default_rng(0)
    labels = [f"s{number}" for number in range(38)] + ["=1+1", "\x1b[31mred\x9b"]
    classes = np.where(np.arange(40) % 2, "@SUM(A1)", "\x1b]0;title\x07 \xa0ill")
    frame = pd.DataFrame({"id": labels, "x\x1b[2J": rng.normal(size=40), "label": classes})
    frame["-3"] = frame["x\x1b[2J"] + np.arange(40) % 2
    frame.to_csv("odd.csv", index=False)
    return ["--view", "a=odd.csv", "--index", "id"]


FIT_ODD = ["fit", "--target", "label", "--p", "2", "--reg", "1", "--output", "odd.skops"]


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_terminals_are_not_told_what_to_do(odd_texts, run, monkeypatch):
    code, out, err = run(*FIT_ODD, *odd_texts)
    assert code == 0
    assert r"20 \x1b]0;title\x07 \xa0ill, 20 @SUM(A1)" in out
    said = [out + err]
    for arguments in (
        ["inspect", "odd.skops"],
        ["inspect", "odd.skops", "--json"],
        ["predict", "odd.skops", "--view", "a=a.csv"],
        [*FIT_ODD, *odd_texts, "--target", "\x1bc", "--debug", "--force"],
        ["fit", "--view", "a=odd.csv:\x1bc", "--target", "label", "--output", "other.skops"],
    ):
        said += run(*arguments)[1:]
    monkeypatch.setattr(sys, "stdout", Terminal())
    assert main(["predict", "odd.skops", *odd_texts]) == 0
    said.append(sys.stdout.getvalue())
    assert r"\x1b[31mred\x9b," in said[-1]
    for text in said:
        assert [letter for letter in text if not letter.isprintable() and letter != "\n"] == []


def test_json_is_json_whatever_names_there_are(odd_texts, run):
    assert run(*FIT_ODD, *odd_texts)[0] == 0
    found = json.loads(run("inspect", "odd.skops", "--json")[1])
    assert found["classes"] == ["\x1b]0;title\x07 \xa0ill", "@SUM(A1)"]


def test_programs_are_told_texts_as_they_are(odd_texts, run):
    """By files and by pipes, so that they can be matched with others."""
    assert run(*FIT_ODD, *odd_texts, "--predictions", "left_out.csv")[0] == 0
    code, out, _ = run("predict", "odd.skops", *odd_texts)
    assert code == 0
    assert run("predict", "odd.skops", *odd_texts, "--output", "found.csv")[0] == 0
    known = pd.read_csv("odd.csv")
    for table in (io.StringIO(out), "found.csv", "left_out.csv"):
        found = pd.read_csv(table)
        assert found["id"].tolist() == known["id"].tolist()
        assert set(found["prediction"]) == set(known["label"])


def test_formulas_are_escaped_if_asked_for(odd_texts, run):
    options = ["--escape-formulas", "--force"]
    assert run(*FIT_ODD, *odd_texts, "--predictions", "left_out.csv", *options)[0] == 0
    code, out, _ = run("predict", "odd.skops", *odd_texts, *options)
    assert code == 0
    assert run("predict", "odd.skops", *odd_texts, "--output", "found.tsv", *options)[0] == 0
    tables = [pd.read_csv(io.StringIO(out)), pd.read_csv("left_out.csv")]
    for found in [*tables, pd.read_csv("found.tsv", sep="\t")]:
        assert found["id"].tolist()[36:39] == ["s36", "s37", "'=1+1"]
        assert set(found["prediction"]) == {"'@SUM(A1)", "\x1b]0;title\x07 \xa0ill"}
        assert found.filter(like="probability").to_numpy().dtype.kind == "f"


@pytest.mark.parametrize(
    ("cell", "escaped"),
    [("-1.5", "-1.5"), ("+2", "+2"), ("-x", "'-x"), ("\tx", "'\tx"), ("a=b", "a=b"), (-1, -1)],
)
def test_numbers_are_no_formulas(cell, escaped):
    frame = pd.DataFrame({"prediction": [cell]}, index=pd.Index([cell], name="=id"))
    found = without_formulas(frame)
    assert found["prediction"].tolist() == found.index.tolist() == [escaped]
    assert found.index.name == "'=id"


def test_models_are_opened_again_however_well_they_are_packed(folder, run, monkeypatch):
    """Models take more memory than their files are long; here little more is allowed."""
    monkeypatch.setattr("manykernels.persistence.archive._LEAST_LIMIT", 2**10)
    monkeypatch.setattr("manykernels.persistence.archive._LIMIT_PER_BYTE", 12)
    assert run("fit", *BOTH, "--output", "model.skops")[0] == 0
    with zipfile.ZipFile("model.skops") as archive:
        assert {info.compress_type for info in archive.infolist()} == {zipfile.ZIP_STORED}
    assert run("predict", "model.skops", "--view", "a=a.csv", "--view", "b=b.csv")[0] == 0
    assert run("inspect", "model.skops")[0] == 0


def test_semicolons_and_decimal_commas(folder, run):
    a, _, label = frames()
    a.assign(label=label)[:N].to_csv("a.csv", sep=";", decimal=",")
    code, _, _ = run("fit", "--view", "a=a.csv", *BOTH[4:], "--output", "m.skops")
    assert code == 0
    assert_allclose(mk.load("m.skops").X_fit_["a"], a[:N])


# -- the target ------------------------------------------------------------------------------


def test_the_target_is_no_feature(folder, run):
    _a, b, label = frames()
    b.assign(label=label, answer=(label == "ill").astype(int))[:N].to_csv("b.csv")
    code, _, err = run("fit", *BOTH, "--output", "m.skops")
    assert code == 0
    assert "column 'answer' of view 'b' determines the target exactly" in err
    assert list(mk.load("m.skops").X_fit_["b"].columns) == ["age", "site", "answer"]
    code, _, err = run("fit", "--view", "b=b.csv:age,label", *BOTH[4:], "--output", "n.skops")
    assert code == 2
    assert "has the target 'label' among its columns" in err


GROUPS = ("--groups", "patients.csv:patient")


def test_groups_are_kept_together(folder, run):
    code, out, err = run("fit", *BOTH, *GROUPS, "--output", "m.skops", "--predictions", "left.csv")
    assert (code, err) == (0, "")
    assert "20 groups by 'patient'" in out
    assert "40 rows of 20 groups were kept together" in out
    a, b, label = frames()
    groups = patients(a.index[:N]).loc[a.index[:N]]
    same = mk.MKFDACV(ps=[2], regs=[1]).fit({"a": a[:N], "b": b[:N]}, label[:N], groups=groups)
    found = mk.load("m.skops")
    assert_array_equal(found.test_fold_, same.test_fold_)
    assert_array_equal(found.groups_, same.groups_)
    score = f"accuracy {same.left_out_score_:.3f} "
    assert score in out
    table = pd.read_csv("left.csv")
    assert np.mean(table["target"] == table["prediction"]) == pytest.approx(same.left_out_score_)


def test_the_groups_are_no_feature(folder, run):
    a, _b, label = frames()
    # Labels that look like numbers are texts.
    groups = patients(a.index[:N])
    a.assign(label=label, patient=groups)[:N].to_csv("a.csv")
    code, out, _ = run("fit", *BOTH, "--groups", "patient", "--output", "m.skops")
    assert code == 0
    assert "40 rows of 20 groups" in out
    model = mk.load("m.skops")
    assert list(model.X_fit_["a"].columns) == ["x", "y"]
    options = ("--view", "a=a.csv:x,patient", *BOTH[2:], "--groups", "patient")
    code, _, err = run("fit", *options, "--output", "n.skops")
    assert code == 2
    assert "View 'a' has the groups 'patient' among its columns: remove it" in err


def test_groups_in_a_specification(folder, run):
    text = (folder / "model.toml").read_text()
    (folder / "model.toml").write_text(f'groups = "patients.csv:patient"\n{text}')
    code, out, _ = run("fit", "--spec", "model.toml", "--output", "m.skops")
    assert code == 0
    assert "20 groups by 'patient'" in out


def test_bad_groups(folder, run):
    table = pd.read_csv("patients.csv", dtype=str).set_index("id")
    for option, change, message in (
        ("doctor", table, "No file has a column 'doctor' of groups"),
        ("patients.csv:patient", table[:-3], "3 of 40 samples have no value of 'patient', their"),
        ("patients.csv:patient", table.assign(patient="p"), "All rows are of one group, 'p'"),
        ("label", table, "groups and target are the same column, 'label'"),
        ("", table, "groups must be the name of a column, or file:column"),
    ):
        change.to_csv("patients.csv")
        code, _, err = run("fit", *BOTH, "--groups", option, "--output", "m.skops")
        assert code in (1, 2)
        assert message in err


def test_the_target_among_numbers(folder, run):
    a, _, _ = frames()
    a.assign(again=a["x"])[:N].to_csv("a.csv")
    options = ("--index", "id", "--target", "x", *QUICK, "--output", "m.skops")
    code, _, err = run("fit", "--view", "a=a.csv", *options)
    assert code == 0
    assert "column 'again' of view 'a' determines the target exactly" in err


def test_files_that_disagree_about_the_target(folder, run):
    _, b, label = frames()
    label.iloc[7] = "ill" if label.iloc[7] == "well" else "well"
    b.assign(label=label)[:N].to_csv("b.csv")
    code, _, err = run("fit", *BOTH, "--output", "m.skops")
    assert code == 1
    assert "The files disagree about 'label' of '007'" in err


def test_samples_without_a_target_are_left_out(folder, run):
    a, _b, label = frames()
    label = label[:N].copy()
    label.iloc[:3] = None
    label.to_csv("labels.csv")
    a[:N].to_csv("a.csv")
    options = [*BOTH[:6], "--target", "labels.csv:label", *QUICK]
    code, out, err = run("fit", *options, "--output", "m.skops")
    assert code == 0
    assert "37 samples" in out
    assert "3 samples without 'label' are left out: '000', '001', '002'" in err


@pytest.mark.parametrize(
    ("values", "task"),
    [
        (["a", "b"], "MKFDACV"),
        pytest.param([0, 1], "MKFDACV", marks=pytest.mark.slow),
        pytest.param([True, False], "MKFDACV", marks=pytest.mark.slow),
        ([0.5, 1.5], "MKRidgeCV"),
        pytest.param(list(range(21)), "MKRidgeCV", marks=pytest.mark.slow),
        pytest.param(list(range(4)), "MKFDACV", marks=pytest.mark.slow),
    ],
)
def test_classes_or_numbers(folder, run, values, task):
    a, _, _ = frames()
    a.assign(target=np.resize(values, len(a)))[:N].to_csv("a.csv")
    options = ("--index", "id", "--target", "target", *QUICK, "--output", "m.skops")
    code, out, _ = run("fit", "--view", "a=a.csv", *options)
    assert code == 0
    assert task in out


def test_the_task_can_be_given(folder, run):
    a, _, _ = frames()
    a.assign(target=np.resize([0, 1, 2], len(a)))[:N].to_csv("a.csv")
    options = ("--index", "id", "--target", "target", *QUICK, "--output", "m.skops")
    code, out, _ = run("fit", "--view", "a=a.csv", *options, "--task", "regression")
    assert code == 0
    assert "MKRidgeCV" in out


def test_text_stays_text_in_a_file_where_it_looks_like_numbers(folder, run):
    """Predictions are the same whatever rows a file has."""
    codes = np.random.default_rng(0).choice(["1", "02", "A"], N, p=[0.2, 0.2, 0.6])
    table = pd.read_csv("b.csv", dtype={"id": str}).assign(code=codes)
    label = pd.read_csv("a.csv", dtype={"id": str}).set_index("id")["label"]
    table = table.assign(label=table["id"].map(label))
    table.to_csv("codes.csv", index=False)
    few = table[table["code"] != "A"].drop(columns="label")
    few.to_csv("few.csv", index=False)
    few.assign(site="west").to_csv("west.csv", index=False)
    options = ("--index", "id", "--target", "label", *QUICK)
    assert run("fit", "--view", "b=codes.csv", *options, "--output", "m.skops")[0] == 0
    every, some = (
        run("predict", "m.skops", "--view", f"b={one}") for one in ("codes.csv", "few.csv")
    )
    assert (every[0], some[0], some[2]) == (0, 0, "")
    known = dict(line.split(",", 1) for line in every[1].splitlines())
    for line in some[1].splitlines():
        name, answer = line.split(",", 1)
        assert answer.split(",")[0] == known[name].split(",")[0]
    assert len(set(some[1].splitlines())) == len(few) + 1
    code, _, err = run("predict", "m.skops", "--view", "b=west.csv")
    assert code == 0
    n = len(few)
    told = (
        f"note: column 'site' of view 'b': {n} of {n} rows have categories that training did not"
    )
    assert err.count(told) == 1
    few.assign(age="old").to_csv("old.csv", index=False)
    code, _, err = run("predict", "m.skops", "--view", "b=old.csv")
    assert code == 1
    assert "column 'age' of view 'b' has 'old' in row 1" in err
    assert "but the training data have numbers: write a number in the file" in err


def test_text_that_is_no_category_is_named(folder, run):
    table = pd.read_csv("a.csv", dtype={"id": str})
    table.assign(smiles=[f"C{i}=O" for i in range(N)]).to_csv("smiles.csv", index=False)
    options = ("--index", "id", "--target", "label", *QUICK, "--output", "m.skops")
    code, _, err = run("fit", "--view", "a=smiles.csv", *options)
    assert code == 1
    assert "column 'smiles' of view 'a' is text, and 40 of 40 entries are different" in err
    assert "--view text=smiles.csv:smiles:spectrum" in err
    assert "select the other columns, --view a=smiles.csv:x,y." in err
    assert ".on(" not in err
    views = ("--view", "a=smiles.csv:x,y", "--view", "s=smiles.csv:smiles:spectrum(k=1)")
    assert run("fit", *views, *options)[0] == 0


def test_distances_are_no_kernels(folder, run):
    a, _, label = frames()
    distances = np.abs(a[:N].to_numpy()[:, :1] - a[:N].to_numpy()[:, :1].T)
    np.savez("d.npz", d=distances, label=label[:N].to_numpy().astype(str))
    code, _, err = run("fit", "--view", "d=d.npz", "--target", "label", "--output", "m.skops")
    assert code == 1
    assert "Kernel 'd' is not positive semi-definite: its eigenvalues go from -" in err
    assert "If it consists of distances, write similarities into the file" in err
    assert "KernelStack" not in err
    options = ("--target", "label", *QUICK, "--output", "m.skops", "--indefinite", "clip")
    code, _, err = run("fit", "--view", "d=d.npz", *options)
    assert (code, err) == (0, "")
    stack = KernelStack.from_arrays({"d": distances}, psd="clip")
    same = mk.MKFDACV("precomputed", ps=[2], regs=[1]).fit(stack, label[:N])
    assert_allclose(mk.load("m.skops").dual_coef_, same.dual_coef_, atol=1e-10)
