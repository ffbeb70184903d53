"""Four studies from raw files to a report: patients, molecules, brain responses, kernels."""

import gzip
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.io import savemat

import manykernels as mk


@pytest.fixture
def at(tmp_path, monkeypatch):
    """An empty folder to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def done(run, *arguments):
    """What a command says that must succeed without a note."""
    code, out, err = run(*arguments)
    assert code == 0, err
    assert err == ""
    return out


def refused(run, *arguments):
    """What a command says that must fail."""
    code, _, err = run(*arguments)
    assert code in (1, 2)
    return err


def page(name):
    text = Path(name).read_text(encoding="utf-8")
    assert "<html" in text
    return text


QUICK = ("--p", "1,2", "--reg", "0.1,1")


# -- patients in three files ---------------------------------------------------------------------


def write_patients():
    """A table of a spreadsheet, one from R with a column per patient, and one that is packed."""
    rng = np.random.default_rng(0)
    n = 70
    ill = rng.random(n) < 0.4
    ids = [f"P{number:03d}" for number in range(n)]
    blood = pd.DataFrame({"crp": np.exp(rng.normal(ill, 0.5)), "age": rng.integers(30, 80, n)})
    blood = blood.round(2).assign(sex=rng.choice(["f", "m"], n), Patient=ids)
    genes = pd.DataFrame(rng.normal(0.8 * ill[:, None], size=(n, 6)), columns=list("uvwxyz"))
    clinic = pd.DataFrame({"Patient": ids, "status": np.where(ill, "relapse", "well")})
    clinic["ward"] = [f"{number % 9:02d}" for number in range(n)]
    known, new = slice(0, 60), slice(60, n)
    for name, rows in (("", known), ("_new", new)):
        # Semicolons and decimal commas, in UTF-16, as spreadsheets write them.
        text = (
            blood[rows].sample(frac=1.0, random_state=0).to_csv(sep=";", decimal=",", index=False)
        )
        Path(f"blood{name}.csv").write_text(text, encoding="utf-16")
        lower = [text.lower() for text in ids[rows]]
        turned = genes[rows].round(3).set_axis(lower).T.rename_axis("gene")
        turned.to_csv(f"genes{name}.tsv", sep="\t")
        with gzip.open(f"clinic{name}.csv.gz", "wt", encoding="utf-8") as file:
            clinic[rows].to_csv(file, index=False)


@pytest.mark.slow
def test_patients_in_three_files(at, run):
    write_patients()
    views = ("--view", "blood=blood.csv", "--view", "genes=genes.tsv", "--index", "Patient")
    options = (*views, "--target", "clinic.csv.gz:status", *QUICK, "--output", "m.skops")
    err = refused(run, "fit", *options)
    assert "'genes.tsv' has no column 'Patient' to match samples by" in err
    assert "--transpose" in err
    err = refused(run, "fit", *options, "--transpose", "genes")
    assert "60 ids look the same but for upper and lower case: pass --match-ids case." in err
    options = (*options, "--transpose", "genes", "--match-ids", "case")
    options = (*options, "--groups", "clinic.csv.gz:ward", "--report", "r.html")
    out = done(run, "fit", *options, "--predictions", "held_out.csv")
    assert "60 samples, target 'status': 2 classes (" in out
    assert "9 groups by 'ward'" in out
    assert "view genes: 6 columns" in out
    score = next(line for line in out.splitlines() if line.startswith("MKFDACV: accuracy"))
    assert score.split()[2] in page("r.html")
    assert len(pd.read_csv("held_out.csv")) == 60
    new = ("--view", "blood=blood_new.csv", "--view", "genes=genes_new.tsv")
    new = (*new, "--transpose", "genes", "--match-ids", "case")
    done(run, "predict", "m.skops", *new, "--output", "new.csv")
    table = pd.read_csv("new.csv").set_index("Patient")
    assert sorted(table.index) == [f"p{number:03d}" for number in range(60, 70)]
    assert set(table["prediction"]) <= {"relapse", "well"}
    out = done(run, "importance", "m.skops", "--scoring", "roc_auc", "--resamples", "2")
    assert "roc_auc, 5 folds held out" in out


# -- molecules -----------------------------------------------------------------------------------


def write_molecules():
    rng = np.random.default_rng(1)
    n = 60
    rings, chain = rng.random(n) < 0.5, rng.integers(1, 9, n)
    smiles = [
        "C" * k + ("c1ccccc1" if ring else "O") for k, ring in zip(chain, rings, strict=True)
    ]
    measured = pd.DataFrame({"weight": 14.0 * chain + 64 * rings, "charge": rng.normal(size=n)})
    table = pd.DataFrame({"name": [f"mol-{i}" for i in range(n)], "smiles": smiles})
    solubility = -0.5 * chain - 2.0 * rings + 0.2 * rng.normal(size=n)
    table.assign(logS=solubility.round(2))[:50].to_csv("molecules.csv", index=False)
    table[50:].to_csv("new.csv", index=False)
    measured.round(2).assign(name=table["name"]).to_csv("measured.csv", index=False)


def test_molecules(at, run):
    write_molecules()
    views = ("--view", "structure=molecules.csv:smiles:molecules", "--view", "m=measured.csv")
    options = ("--index", "name", "--target", "logS", *QUICK, "--missing", "mean")
    out = run("fit", *views, *options, "--output", "m.skops", "--report", "r.html")
    assert out[0] == 0
    assert "50 samples, target 'logS': numbers from" in out[1]
    assert "10 samples without 'logS' are left out" in out[2]
    assert "R²" in page("r.html")
    new = ("--view", "structure=new.csv", "--view", "m=measured.csv", "--coverage", "0.8")
    code, out, _ = run("predict", "m.skops", "--view", "structure=new.csv", "--coverage", "0.8")
    assert code == 0
    assert out.splitlines()[0] == "name,prediction,low,high"
    assert len(out.splitlines()) == 11
    assert run("predict", "m.skops", *new)[0] == 0
    wrong = pd.read_csv("molecules.csv")
    wrong.loc[3, "smiles"] = "C1CC"
    wrong.to_csv("molecules.csv", index=False)
    err = refused(run, "fit", *views, *options, "--output", "m.skops", "--force")
    assert "row 3 has 'C1CC', which is no SMILES of a molecule that RDKit can read" in err


# -- brain responses -----------------------------------------------------------------------------


def write_responses():
    """Stimuli in rows of features, and responses of voxels; ids with and without zeros."""
    rng = np.random.default_rng(2)
    n = 60
    sounds, words = rng.normal(size=(n, 5)), rng.normal(size=(n, 3))
    voxels = np.column_stack([sounds[:, 0] + 0.3 * rng.normal(size=n), words @ [1.0, 1.0, 0.0]])
    pd.DataFrame(sounds, columns=[f"s{k}" for k in range(5)]).round(3).assign(
        stimulus=[f"{i:03d}" for i in range(n)]
    ).to_csv("sounds.csv", index=False)
    pd.DataFrame(words, columns=["w0", "w1", "w2"]).round(3).assign(stimulus=range(n)).to_csv(
        "words.csv", index=False
    )
    frame = pd.DataFrame(voxels, columns=["left", "right"]).round(3)
    frame = frame.assign(stimulus=range(n), run=np.arange(n) // 10)
    frame.to_csv("voxels.csv", index=False)
    many = voxels @ rng.normal(size=(2, 30)) + 0.3 * rng.normal(size=(n, 30))
    many = pd.DataFrame(many, columns=[f"v{k:02d}" for k in range(30)]).round(3)
    many.assign(stimulus=range(n), run=frame["run"]).to_csv("many.csv", index=False)


@pytest.mark.slow
def test_brain_responses(at, run):
    write_responses()
    views = ("--view", "sounds=sounds.csv", "--view", "words=words.csv", "--index", "stimulus")
    targets = ("--target", "voxels.csv:left", "--target", "voxels.csv:right")
    options = (*views, *targets, *QUICK, "--groups", "voxels.csv:run")
    err = refused(run, "fit", *options, "--output", "m.skops")
    assert "look the same but for leading zeros: pass --match-ids number." in err
    options = (*options, "--match-ids", "number", "--report", "r.html", "--output", "m.skops")
    out = done(run, "fit", *options, "--predictions", "held_out.csv")
    assert "60 samples, 2 targets" in out
    assert "6 groups by 'run'" in out
    assert "target 0" in page("r.html").lower()
    held_out = pd.read_csv("held_out.csv")
    for voxel in ("left", "right"):
        assert (
            np.corrcoef(held_out[f"target_{voxel}"], held_out[f"prediction_{voxel}"])[0, 1] > 0.7
        )
    # All voxels of a file: neither the index nor the groups are among them.
    options = (*views, "--match-ids", "number", *QUICK)
    many = ("--target", "many.csv:*", "--groups", "many.csv:run")
    more = ("--report", "many.html", "--predictions", "many_left.csv", "--output", "many.skops")
    out = done(run, "fit", *options, *many, *more)
    assert "60 samples, 30 targets" in out
    assert "and 20 more" in out
    score = next(line for line in out.splitlines() if line.startswith("MKRidgeCV: mean R²"))
    assert score.split()[6].strip(",") in page("many.html")
    assert list(pd.read_csv("many_left.csv"))[1:31] == [f"target_v{k:02d}" for k in range(30)]
    new = ("--view", "sounds=sounds.csv", "--view", "words=words.csv", "--match-ids", "number")
    out = done(run, "predict", "many.skops", *new)
    assert out.splitlines()[0].endswith("prediction_v28,prediction_v29")
    out = done(run, "importance", "many.skops", "--resamples", "0")
    assert "words" in out
    few = ("--methods", "fisher,constant,linear", "--folds", "3")
    options = (*views, *targets, *QUICK, "--groups", "voxels.csv:run", "--match-ids", "number")
    out = done(run, "compare", *options, *few)
    assert "linear" in out


# -- ready-made kernels --------------------------------------------------------------------------


def write_kernels():
    """A stack of kernels with ids and labels, a similarity that is no kernel, and distances."""
    rng = np.random.default_rng(3)
    n, n_new = 50, 8
    y = rng.integers(0, 2, n + n_new)
    views = [rng.normal(1.5 * y[:, None], size=(n + n_new, 2)), rng.normal(size=(n + n_new, 2))]
    kernels = np.array([np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(-1)) for X in views])
    ids = np.array([f"sub-{i:02d}" for i in range(n + n_new)])
    labels = np.where(y, "case", "control")
    np.savez("kernels.npz", K=kernels[:, :n, :n], subject=ids[:n], label=labels[:n])
    np.savez("kernels_new.npz", K=kernels[:, n:, :n], subject=ids[n:])
    noise = rng.normal(size=(n, n)) * 0.3
    savemat("similar.mat", {"S": kernels[0, :n, :n] + (noise + noise.T) / 2})
    np.save("distances.npy", np.sqrt(((views[0][:n, None] - views[0][:n]) ** 2).sum(-1)))


def test_ready_made_kernels(at, run):
    write_kernels()
    options = ("--view", "k=kernels.npz", "--index", "subject", "--target", "label", *QUICK)
    more = ("--report", "r.html", "--predictions", "held_out.csv")
    out = done(run, "fit", *options, *more, "--output", "m.skops")
    assert "50 samples, target 'label': 2 classes" in out
    assert "2 kernels: K_0, K_1" in out
    assert "K_0" in page("r.html")
    assert list(pd.read_csv("held_out.csv")["subject"])[:2] == ["sub-00", "sub-01"]
    out = done(run, "predict", "m.skops", "--view", "k=kernels_new.npz")
    assert out.splitlines()[0] == "subject,prediction,probability_case,probability_control"
    assert out.splitlines()[1].startswith("sub-50,")
    assert mk.load("m.skops").kernel_names_ == ["K_0", "K_1"]
    out = done(run, "importance", "m.skops", "--resamples", "0")
    assert "K_1" in out


def test_similarities_and_distances_are_no_kernels(at, run):
    write_kernels()
    labels = np.load("kernels.npz")["label"]
    pd.DataFrame({"label": labels}).to_csv("labels.csv", index=False)
    for file in ("similar.mat", "distances.npy"):
        options = ("--view", f"s={file}", "--target", "labels.csv:label", *QUICK)
        err = refused(run, "fit", *options, "--output", "m.skops")
        assert "pass --indefinite clip" in err
        assert "exp(-distance**2)" in err
        code, out, _ = run("fit", *options, "--output", f"{file}.skops", "--indefinite", "clip")
        assert code == 0
        assert "accuracy" in out
