"""Which public data sets there are, where they come from, and how they are read.

Checksums are those of files that were seen. Where a set has them from a copy, the address is that
of the copy, at a fixed version if it has versions. `mfeat`, `satimage` and `concrete` have the
address of the repository and checksums of copies: should a copy differ from the original in a
byte, the download is refused and says so. The addresses themselves could not be tried.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from . import _parsers
from ._download import File

_UCI = "UCI Machine Learning Repository"
_PAGE = "https://archive.ics.uci.edu/dataset"
_UCI_FILES = "https://archive.ics.uci.edu/ml/machine-learning-databases"
_BROWNLEE = (
    "https://raw.githubusercontent.com/jbrownlee/Datasets/a8229c90a131a53c58be9027e047e6a74f11a264"
)
_OPENML = (
    "https://raw.githubusercontent.com/datasets/openml-datasets/"
    "1e58ec568e0c1ad07909bc0f967a1fd3f5a9e5b3/data"
)
_PENDIGITS = "https://raw.githubusercontent.com/bschlief/pendigits/master"


@dataclass(frozen=True)
class Source:
    """A data set: its title and page, what it holds, its files, how they are read.

    `n_rows` and `columns` are what the published files have; a set of several views has the number
    of columns of each.
    """

    title: str
    page: str
    about: str
    n_rows: int
    columns: int | dict[str, int]
    parser: Callable[..., _parsers.Parsed]
    files: tuple[File, ...]

    @property
    def description(self) -> str:
        """What the attribute DESCR of a data set says."""
        checked = all(file.sha256 is not None for file in self.files)
        return "\n".join(
            [
                f"{self.title}\n\n{self.about}\n\nPage: {self.page}",
                *(f"File: {file.path}, from {file.url}" for file in self.files),
                f"Downloads are {'compared with' if checked else 'NOT compared with'} checksums.",
            ]
        )


def _pendigits_file(part: str, sha256: str, n_bytes: int) -> File:
    name = f"pendigits_{part}.csv"
    return File(f"pendigits4v/{name}", f"{_PENDIGITS}/{name}", sha256, n_bytes)


SOURCES = {
    "sonar": Source(
        f"{_UCI}: Connectionist Bench (Sonar, Mines vs. Rocks)",
        f"{_PAGE}/151 (there called sonar.all-data)",
        "208 sonar echoes in 60 frequency bands: rock (R) or metal cylinder (M).\n"
        "Ye, Ji and Chen (2008), Tables 2 and 4.",
        208,
        60,
        _parsers.labelled_rows,
        (
            File(
                "sonar/sonar.csv",
                f"{_BROWNLEE}/sonar.csv",
                "3079c09b5d2789a0f96aff82c28e5164fafe2495c5f8da96c6c256c1bd25763f",
                87775,
            ),
        ),
    ),
    "ionosphere": Source(
        f"{_UCI}: Ionosphere",
        f"{_PAGE}/52 (there called ionosphere.data)",
        "351 radar returns, 17 complex numbers each: good (g) if they show structure, or bad\n"
        "(b).\n"
        "Ye, Ji and Chen (2008), Tables 2 and 4.",
        351,
        34,
        _parsers.labelled_rows,
        (
            File(
                "ionosphere/ionosphere.csv",
                f"{_BROWNLEE}/ionosphere.csv",
                "fd6dd7864b55d56dac0a1e6e24af9ccc35bf2555ac79af8ab9f3d1daa065ab83",
                76466,
            ),
        ),
    ),
    "satimage": Source(
        f"{_UCI}: Statlog (Landsat Satellite)",
        f"{_PAGE}/146 (there called sat.trn, sat.tst)",
        "6435 neighbourhoods of 3 × 3 pixels in four spectral bands, six kinds of ground: 1, 2,\n"
        "3, 4, 5 and 7. The first 4435 rows are the training part. The providers ask that the\n"
        "parts be kept apart and no cross-validation run over them together: neighbourhoods\n"
        "overlap.\n"
        "Ye, Ji and Chen (2008), Tables 10 to 12.",
        6435,
        36,
        _parsers.numbered_rows,
        (
            File(
                "satimage/sat.trn.txt",
                f"{_UCI_FILES}/statlog/satimage/sat.trn",
                "e896dc88a960fa2404160fc4c3cb3dc53fcf4afd80ba920bf2d261bd42d12613",
                525830,
            ),
            File(
                "satimage/sat.tst.txt",
                f"{_UCI_FILES}/statlog/satimage/sat.tst",
                "4b9167b8a92baafafed7c8809aef86d0683a5e685c19d98d119fa6974f0f2479",
                236745,
            ),
        ),
    ),
    "mfeat": Source(
        f"{_UCI}: Multiple Features",
        f"{_PAGE}/72 (there called mfeat-fac, mfeat-fou, ...)\n"
        "  The two .openml.csv files are the same data from OpenML: mfeat-karhunen,\n"
        "  mfeat-zernike, saved as CSV with a header line and the class last.",
        "2000 handwritten numerals in six views, 200 per digit, in the order of the digits.\n"
        "Gönen and Alpaydın (2013), Tables 1 to 3.",
        2000,
        {"fac": 216, "fou": 76, "mor": 6, "pix": 240, "kar": 64, "zer": 47},
        _parsers.mfeat,
        (
            File(
                "mfeat/mfeat-fac.txt",
                f"{_UCI_FILES}/mfeat/mfeat-fac",
                "83be9bc9fd50c6dd0b0532f6b6101956f1cf51c71b33f22d3f0cd2b5befb31b5",
                2162000,
            ),
            File(
                "mfeat/mfeat-fou.txt",
                f"{_UCI_FILES}/mfeat/mfeat-fou",
                "d2bed48a4d302efe77bd80d52e16a211e99efe6fee9baf1c28dcc199c43c50ad",
                1826000,
            ),
            File(
                "mfeat/mfeat-mor.txt",
                f"{_UCI_FILES}/mfeat/mfeat-mor",
                "8767b326d874f096de06d525a2df4e610f4e9dfe91e29c250d8a3054907e3b61",
                182000,
            ),
            File(
                "mfeat/mfeat-pix.txt",
                f"{_UCI_FILES}/mfeat/mfeat-pix",
                "70a1cd033add46614464a8740ddc23c3693765985bde52ccb6b702bff23b64f1",
                1442000,
            ),
            File(
                "mfeat/mfeat-kar.openml.csv",
                f"{_OPENML}/mfeat-karhunen/mfeat-karhunen.csv",
                "5220abfad7fc0dd40d21220fb134d34ddd090a88abc2f7d60ea261c4d9bd6755",
                1476884,
            ),
            File(
                "mfeat/mfeat-zer.openml.csv",
                f"{_OPENML}/mfeat-zernike/mfeat-zernike.csv",
                "80b36c9429ed89cfb23a0dd2f7b1b6e937ae11fc7b906c954c8817210c1cc401",
                1132554,
            ),
        ),
    ),
    "pendigits": Source(
        "Pen-based digits in four representations",
        "http://mkl.ucsd.edu/dataset/pendigits\n  (mirror: https://github.com/bschlief/pendigits)",
        "10992 digits written with a pen, in four views: points along the stroke (dyn) and\n"
        "pictures of 4 × 4, 8 × 8 and 16 × 16 pixels. The first 7494 rows are the training part.\n"
        "The targets are 1 to 10, where 10 is the digit 0.",
        10992,
        {"dyn": 16, "sta4": 16, "sta8": 64, "sta16": 256},
        _parsers.pendigits,
        (
            _pendigits_file(
                "dyn_train",
                "b778bdc57a2542c84996c54cf43139c6a652aa97dd1b5015ce89d40caea90a28",
                352904,
            ),
            _pendigits_file(
                "dyn_test",
                "5f4e6fed0c6db84ba517afdf1dbef62849c0c8a4e99bfbb5212d3f4f81673730",
                164735,
            ),
            _pendigits_file(
                "sta4_train",
                "fd9bf8898071603787414eb02c104de30a7ced0176b6d64029e2dbde738bd92e",
                240001,
            ),
            _pendigits_file(
                "sta4_test",
                "825d880d83c45bd7ce2eb7593d5bdea9a9bc3487e277e708fe3304315c45845a",
                112016,
            ),
            _pendigits_file(
                "sta8_train",
                "4c4ab2eea74feed5193b904b50a9cc7bcdb7c50eb83985e966dac1bcdb699be2",
                959232,
            ),
            _pendigits_file(
                "sta8_test",
                "ef7c782451297521fbfac6aa023f43e509631cf8c692d493033ac05f5b42cef4",
                447744,
            ),
            _pendigits_file(
                "sta16_train",
                "1c2fed18b3c63df2be1c391a82f2041f5ccf3603c4cee8beeb8303c8f5283dc1",
                3836928,
            ),
            _pendigits_file(
                "sta16_test",
                "b0dd63ccb284c6f115f6c2f8f591d3b30790a337743aa6ae343d3a123d4caf71",
                1790976,
            ),
            _pendigits_file(
                "label_train",
                "6a94a2ab1cb33a0579f689ef27a36a38846bc3fde87df1a23ccb6ffad6414048",
                15768,
            ),
            _pendigits_file(
                "label_test",
                "1916b7252565f84c459045397077c3fd492d52e467afc1831f3d01356360b10e",
                7359,
            ),
        ),
    ),
    "concrete": Source(
        f"{_UCI}: Concrete Compressive Strength",
        f"{_PAGE}/165",
        "1030 samples of concrete: what is in it, its age in days, and its strength in MPa.\n"
        "Gönen and Alpaydın (2013), Tables 8 and 9.",
        1030,
        8,
        _parsers.concrete,
        (
            File(
                "concrete/Concrete_Data.xls",
                f"{_UCI_FILES}/concrete/compressive/Concrete_Data.xls",
                "710076c66b9ca3f8050e7942f3dcbdbe04013534daeb0077ffd3079a52d8e0c4",
                124928,
            ),
        ),
    ),
    # The files of the sets below have never been seen.
    "heart": Source(
        f"{_UCI}: Statlog (Heart)",
        f"{_PAGE}/145 (there called heart.dat)",
        "270 patients, 13 measurements: without (1) or with (2) a disease of the heart.\n"
        "Ye, Ji and Chen (2008), Table 3.",
        270,
        13,
        _parsers.numbered_rows,
        (File("heart/heart.dat", f"{_UCI_FILES}/statlog/heart/heart.dat"),),
    ),
    "segment": Source(
        f"{_UCI}: Statlog (Image Segmentation)",
        f"{_PAGE}/147 (there called segment.dat)",
        "2310 regions of 3 × 3 pixels of outdoor pictures, seven kinds, 1 to 7.\n"
        "Ye, Ji and Chen (2008), Tables 13 and 14.",
        2310,
        19,
        _parsers.numbered_rows,
        (File("segment/segment.dat", f"{_UCI_FILES}/statlog/segment/segment.dat"),),
    ),
    "white_wine": Source(
        f"{_UCI}: Wine Quality",
        f"{_PAGE}/186 (there called winequality-white.csv)",
        "4898 white wines, 11 chemical measurements, and a grade of their quality.\n"
        "Gönen and Alpaydın (2013), Tables 10 and 11.",
        4898,
        11,
        _parsers.wine_quality,
        (
            File(
                "white_wine/winequality-white.csv",
                f"{_UCI_FILES}/wine-quality/winequality-white.csv",
            ),
        ),
    ),
}
