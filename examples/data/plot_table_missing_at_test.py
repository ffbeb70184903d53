"""
A table that new samples do not have
====================================

A study measures mRNA, miRNA and proteins of 150 tumours. The hospital that wants to use the model
does not measure proteins. Should the model be trained without them, or can they help although no
new tumour has them? The data are simulated in the shape of a public data set of breast cancer, on
which this question was first asked; results on the real data are on the page *On real data*.
"""

# %%
# Simulated tumours
# -----------------
# Three subtypes. Some processes in the cell differ between them. Each process changes a part of
# the columns of every table, and the proteins show it with the least noise.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from manykernels import MKFDACV, Views, view_importance

N_TRAIN, N_TEST = 150, 70
COLUMNS = {"mrna": 200, "mirna": 184, "protein": 142}
NOISE = {"mrna": 5.0, "mirna": 7.0, "protein": 3.0}
SUBTYPES = np.array(["Basal", "Her2", "LumA"])


def simulate(seed):
    """Return three tables of 220 tumours, and their subtypes."""
    rng = np.random.default_rng(seed)
    subtype = rng.integers(3, size=N_TRAIN + N_TEST)
    processes = rng.normal(size=(3, 6))[subtype] + rng.normal(size=(len(subtype), 6))
    tumours = [f"T{number:03d}" for number in range(len(subtype))]
    tables = {}
    for name, n_columns in COLUMNS.items():
        changed = rng.normal(size=(6, n_columns)) * (rng.random((6, n_columns)) < 0.2)
        noise = NOISE[name] * rng.normal(size=(len(subtype), n_columns))
        tables[name] = pd.DataFrame(processes @ changed + noise, index=tumours)
        tables[name].columns = [f"{name}{number}" for number in range(n_columns)]
    return tables, pd.Series(SUBTYPES[subtype], index=tumours)


tables, subtype = simulate(0)
train = {name: table.iloc[:N_TRAIN] for name, table in tables.items()}
test = {name: table.iloc[N_TRAIN:] for name, table in tables.items() if name != "protein"}
known, new = subtype.iloc[:N_TRAIN], subtype.iloc[N_TRAIN:]
print({name: table.shape for name, table in train.items()})
print({name: table.shape for name, table in test.items()})

# %%
# Predicting without proteins
# ---------------------------
# With ``missing="mean"`` or ``missing="conditional"``, ``predict`` accepts tumours that lack a
# table. No other line changes. ``"mean"`` uses the mean of the training tumours, ``"conditional"``
# predicts the missing kernel values from the tables that are present.

model = MKFDACV(missing="conditional").fit(train, known)
predicted = model.predict(test)
print(f"{np.sum(predicted != new)} errors of {len(new)}")

# %%
# Is it better to train without proteins?
# ---------------------------------------
# One division of 220 tumours says little, so we simulate the study five times. The first bar is
# the bound: the accuracy if new tumours had proteins, too. A model that was trained with proteins
# and predicts without them is no better here than one that was trained without them. Its advantage
# is another one: the same model also predicts for tumours that have proteins.


def rows(table, of):
    return table.iloc[:N_TRAIN] if of == "train" else table.iloc[N_TRAIN:]


grid = {"ps": [2, np.inf], "regs": [0.1, 1.0, 10.0]}
accuracy = {name: [] for name in ("all tables", "conditional", "mean", "trained without")}
for seed in range(5):
    tables, subtype = simulate(seed)
    train, full = ({n: rows(t, of) for n, t in tables.items()} for of in ("train", "test"))
    known, new = rows(subtype, "train"), rows(subtype, "test")
    short = {name: table for name, table in full.items() if name != "protein"}
    for missing in ("conditional", "mean"):
        model = MKFDACV(missing=missing, **grid).fit(train, known)
        accuracy[missing].append(np.mean(model.predict(short) == new))
    accuracy["all tables"].append(np.mean(model.predict(full) == new))
    without = {name: table for name, table in train.items() if name != "protein"}
    model = MKFDACV(**grid).fit(without, known)
    accuracy["trained without"].append(np.mean(model.predict(short) == new))

for name, values in accuracy.items():
    error = np.std(np.subtract(values, accuracy["trained without"]), ddof=1) / np.sqrt(len(values))
    print(f"{name:<16} {np.mean(values):.1%}, difference to the last ± {error:.1%}")

# %%
# Which tables matter
# -------------------
# ``view_importance`` answers this on the training tumours, which have all tables.

tables, subtype = simulate(0)
train = {name: rows(table, "train") for name, table in tables.items()}
importance = view_importance(MKFDACV(**grid), Views(train), rows(subtype, "train"), n_resamples=0)
print(importance)

# %%
# Figure
# ------

titles = {
    "all tables": "new tumours have all tables",
    "conditional": 'without proteins, missing="conditional"',
    "mean": 'without proteins, missing="mean"',
    "trained without": "trained without proteins",
}
fig, (left, right) = plt.subplots(1, 2, figsize=(10, 3), layout="constrained")
bars = left.barh(
    list(titles.values()),
    [np.mean(accuracy[name]) for name in titles],
    color=["#b8b8b8", "#0072b2", "#0072b2", "#9db8d1"],
)
left.bar_label(bars, fmt="{:.1%}", padding=3)
left.set(xlim=(0.5, 1.0), title="accuracy on new tumours, five simulations")
left.invert_yaxis()
low, high = importance.fall_interval.T
right.axvline(0.0, color="#b8b8b8", linewidth=1)
right.errorbar(
    importance.fall,
    importance.names,
    xerr=(importance.fall - low, high - importance.fall),
    fmt="o",
    color="#0072b2",
)
right.set(title="fall of the accuracy without the table")
right.invert_yaxis()
for ax in (left, right):
    ax.spines[["top", "right"]].set_visible(False)
plt.show()
