"""
Messy columns: kernels after skrub's TableVectorizer
====================================================

Job titles with typing errors, dates and numbers in one table: the default kernels refuse dates,
and would compare job titles as categories, in which every misspelt title is a category of its own.
`skrub <https://skrub-data.org>`_ turns such columns into numbers. Put its ``TableVectorizer`` into
kernels, one for each kind of column: it is then fitted to the training rows only, and
``view_importance`` shows which columns are needed.
"""

# %%
# A table of employees
# --------------------
# The salary depends on the job, on the year of hiring and a little on the hours.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from skrub import TableVectorizer

from manykernels import MKRidgeCV, view_importance
from manykernels.kernels import RBF, Linear

rng = np.random.default_rng(0)
n_rows = 200
pay = {"nurse": 3.0, "teacher": 2.0, "police officer": 4.0, "fire fighter": 4.0}
pay |= {"bus driver": 1.0, "librarian": 1.5, "mail carrier": 1.0, "cook": 0.5}


def misspelt(title):
    """Return the title without one of its letters, or with an ending."""
    place = rng.integers(len(title))
    endings = [" I", " II", " (part time)"]
    return (
        title[:place] + title[place + 1 :] if rng.random() < 0.5 else title + rng.choice(endings)
    )


jobs = rng.choice(list(pay), n_rows)
days = rng.integers(0, 7000, n_rows)
employees = pd.DataFrame(
    {
        "job": [misspelt(job) for job in jobs],
        "hired": pd.Timestamp("2000-01-01") + pd.to_timedelta(days, unit="D"),
        "hours": rng.normal(38, 4, n_rows),
    }
)
salary = np.array([pay[job] for job in jobs]) - days / 3000 + 0.05 * employees["hours"]
salary += rng.normal(scale=0.4, size=n_rows)
print(employees.head(4))
print(f"{employees['job'].nunique()} different titles of {len(pay)} jobs")

# %%
# One kernel for each kind of column
# ----------------------------------
# ``on`` chooses the columns of a kernel, ``after`` what happens to them before they are compared.

kernels = {
    "job": RBF().on(["job"]).after(TableVectorizer()),
    "hired": RBF().on(["hired"]).after(TableVectorizer()),
    "hours": Linear().on(["hours"]),
}
model = MKRidgeCV(kernels).fit(employees, salary)
print(f"R² of rows left out {model.left_out_score_:.2f}")

new = pd.DataFrame(
    {"job": ["nurs", "cook III"], "hired": pd.to_datetime(["2003-05-01"] * 2), "hours": [38.0] * 2}
)
print(model.predict(new).round(1))

# %%
# Without the bridge, titles have to be categories, and years numbers:

plain = employees.assign(
    job=employees["job"].astype("category"), hired=employees["hired"].dt.year.astype(float)
)
alone = {"categories and years": MKRidgeCV().fit(plain, salary).left_out_score_}
scores = {"with TableVectorizer": model.left_out_score_, **alone}
print({name: round(float(score), 2) for name, score in scores.items()})

# %%
# Which columns matter
# --------------------

importance = view_importance(MKRidgeCV(kernels), employees, salary, n_resamples=20)
print(importance)
importance.plot()
plt.show()
