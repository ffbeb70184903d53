"""
Sparse or non-sparse weights?
=============================

This example shows how many kernels have a weight under each norm, and tests whether a sparse and a
non-sparse combination differ significantly.
"""

# %%
# The effective number of kernels grows with p, from a few at p = 1 to all of them.

import matplotlib.pyplot as plt
from sklearn.model_selection import train_test_split

from manykernels import MKFDA, kernels_for
from manykernels.datasets import load_digit_views
from manykernels.kernels import RBF
from manykernels.metrics import five_by_two_cv_f_test
from manykernels.reporting import sparsity_report

views, y = load_digit_views(noise=3)
X, _, y, _ = train_test_split(views, y, train_size=300, stratify=y, random_state=0)
stack = kernels_for(X, RBF(gamma="median")).fit(X)(X)
report = sparsity_report(stack, y, ps=[1, 1.125, 2, 8, float("inf")], reg=3.0)
print(report)

# %%
# The combined 5×2 cv F test (Alpaydın 1999) compares two models on five random splits into halves.
# A small p-value shows that they differ.

sparse, dense = (MKFDA("precomputed", p=p, reg=3.0) for p in (1, float("inf")))
test = five_by_two_cv_f_test(sparse, dense, stack, y, random_state=0)
print(f"\np = 1 against p = inf: F = {test.statistic:.2f}, p-value {test.pvalue:.2f}")

# %%
# Figure
# ------

report.plot()
plt.show()
