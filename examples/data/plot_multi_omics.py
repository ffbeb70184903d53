"""
Several tables of the same patients, with missing rows
======================================================

Three tables come from three laboratories. Their rows are in different orders, and some patients
are missing in some tables. The tables are passed to ``fit`` without preprocessing: rows are
matched by label, and ``missing`` determines how patients who lack a table are treated.
"""

# %%
# Three tables
# ------------
# The disease changes some genes and some proteins, and older patients are ill more often. The
# tables are in different orders. A third of the patients has no proteins, a fifth no genes.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.model_selection import cross_val_score, train_test_split

from manykernels import MKFDACV, Views, auto_kernels

rng = np.random.default_rng(0)
patients = np.array([f"P{number:03d}" for number in range(240)])
ill = rng.random(240) < 0.5
state = pd.Series(np.where(ill, "ill", "well"), index=patients)


def table(name, n_columns, n_changed, size):
    """Return skewed measurements; the first `n_changed` columns are larger in ill patients."""
    effect = size * np.outer(ill, np.arange(n_columns) < n_changed)
    values = np.exp(rng.normal(effect, 1.0))
    columns = [f"{name}{number}" for number in range(n_columns)]
    return pd.DataFrame(values, index=patients, columns=columns)


genes, proteins = table("gene", 200, 12, 0.6), table("protein", 40, 5, 0.7)
clinic = pd.DataFrame(
    {"age": rng.normal(55 + 8 * ill, 10), "site": rng.choice(["north", "south"], 240)},
    index=patients,
)
tables = {
    "genes": genes.sample(frac=0.8, random_state=1),
    "proteins": proteins.sample(frac=0.67, random_state=2),
    "clinic": clinic.sample(frac=1.0, random_state=3),
}

# %%
# Missing rows raise an error
# ---------------------------
# By default, samples are neither dropped nor filled in.

try:
    MKFDACV().fit(tables, state)
except ValueError as refusal:
    print(refusal)

# %%
# All patients
# ------------
# ``join="outer"`` keeps all patients. Each table has default kernels, and p and λ are chosen by
# cross-validation. Missing tables are replaced by the mean, or reconstructed from the available
# tables.

views = Views(tables, join="outer")
print(f"\n{views}")
print("kernels of the clinic:", ", ".join(name for name, _ in auto_kernels(clinic).kernels))

y = state.loc[views.labels]
grid = {"ps": [1, 2, np.inf], "regs": [0.1, 1.0, 10.0]}
ways = {"mean": "mean of the other patients", "conditional": "from the other tables"}
scores = {ways[way]: cross_val_score(MKFDACV(missing=way, **grid), views, y, cv=5) for way in ways}
whole = views[views.present.all(axis=1)]
scores["only patients with all tables"] = cross_val_score(
    MKFDACV(**grid), whole, y[views.present.all(axis=1)], cv=5
)
print(f"\n{'':<34}{'accuracy in folds':>18}")
for way, values in scores.items():
    print(f"{way:<34}{values.mean():>18.1%}")
print(f"(the last of {len(whole)} patients, the others of {len(views)})")

# %%
# New patients without a table
# ----------------------------
# A model fitted to three tables can predict with two, if the third is not measured at all.

train, test, y_train, y_test = train_test_split(views, y, stratify=y, random_state=0)
model = MKFDACV(missing="mean", **grid).fit(train, y_train)
accuracies = {"all tables": model.score(test, y_test)}
for lost in views:
    rest = {name: frame for name, frame in tables.items() if name != lost}
    rest = {name: frame[frame.index.isin(test.labels)] for name, frame in rest.items()}
    known = Views(rest, join="outer")
    accuracies[f"without {lost}"] = model.score(known, y_test.loc[known.labels])
print()
for case, accuracy in accuracies.items():
    print(f"predicted, {case:<18}{accuracy:>8.1%}")

fig, ax = plt.subplots(figsize=(6, 2.4), layout="constrained")
bars = ax.barh(list(accuracies), list(accuracies.values()), color=["#2a5d8f", *["#9db8d1"] * 3])
ax.bar_label(bars, fmt="{:.0%}", padding=3)
ax.set(xlim=(0.5, 1.0), xlabel="accuracy on new patients")
ax.invert_yaxis()
ax.spines[["top", "right"]].set_visible(False)
plt.show()
