"""
Molecular fingerprints and numbers
==================================

Molecules are described by fingerprints, long binary vectors that record which fragments they
contain, and by a few measured numbers. The Tanimoto or Jaccard similarity of two molecules is the
number of common fragments divided by the number of fragments that occur in either molecule.
"""

# %%
# Simulated molecules
# -------------------
# Each molecule has some of the fragments of its family and some random ones; large molecules have
# more of both. Activity depends on the family and on the first measured number.

import matplotlib.pyplot as plt
import numpy as np
from scipy import sparse
from sklearn.model_selection import cross_val_score

from manykernels import MKSVCCV, Views, auto_kernels
from manykernels.kernels import RBF, Linear, Tanimoto

rng = np.random.default_rng(0)
n, n_bits, n_families = 300, 1024, 12
family = rng.integers(n_families, size=n)
fragments = rng.random((n_families, n_bits)) < 0.03
weight = rng.uniform(0.15, 1.0, (n, 1))  # large molecules have more fragments
seen, chance = rng.random((2, n, n_bits))
bits = (fragments[family] & (seen < 0.7 * weight)) | (chance < 0.03 * weight)
numbers = np.column_stack([rng.normal(2.5, 1.0, n), 400 * weight, rng.poisson(2, n)])
active = np.where(np.isin(family, [0, 3, 5, 8, 9]) & (numbers[:, 0] < 3.2), "active", "inactive")

molecules = Views({"fingerprint": sparse.csr_array(bits.astype(float)), "measured": numbers})
print(molecules)
print("active:", np.mean(active == "active").round(2))

# %%
# Kernels for fingerprints
# ------------------------
# The measured numbers always have their default kernels, and the classes are balanced by
# ``class_weight``. In this example single fragments are informative, which suits the linear
# kernel. No kernel is best for all data, so the default kernels combine several and learn their
# weights.

options = {"class_weight": "balanced", "scoring": "balanced_accuracy"}
measured = {"measured": None}  # the default kernels of this view
candidates = {
    "linear": Linear(),
    "Gaussian": RBF(),
    "Tanimoto": Tanimoto(),
    "linear, Tanimoto": [Linear(), Tanimoto()],
    "default kernels": None,
}
accuracies = {}
print("\nbalanced accuracy in five folds")
for name, kernel in candidates.items():
    model = MKSVCCV({"fingerprint": kernel, **measured}, ps=[2], **options)
    scores = cross_val_score(model, molecules, active, scoring="balanced_accuracy")
    accuracies[name] = scores.mean()
    print(f"  {name:<18}{scores.mean():.1%}")
print("\ndefault kernels of fingerprints:")
for name, kernel in auto_kernels(molecules["fingerprint"]).kernels:
    print(f"  {name:<16}{kernel}")

# %%
# Figure
# ------

fig, ax = plt.subplots(figsize=(6, 2.6), layout="constrained")
bars = ax.barh(list(accuracies), list(accuracies.values()), color="#0072b2")
ax.bar_label(bars, fmt="{:.1%}", padding=3)
ax.set(xlim=(0.5, 1.0), title="balanced accuracy in five folds, by kernels of the fingerprint")
ax.invert_yaxis()
ax.spines[["top", "right"]].set_visible(False)
plt.show()
