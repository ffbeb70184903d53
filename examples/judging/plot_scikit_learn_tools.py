"""
Tools of scikit-learn on several tables
=======================================

A ``Views`` object is indexed by rows like a table, and its columns are the views. So the tools of
scikit-learn work on it: here a learning curve, calibration, and permutation importance, which
shuffles whole views.
"""

# %%
# Two informative views and one of noise
# --------------------------------------

import matplotlib.pyplot as plt
import numpy as np
from sklearn.calibration import CalibratedClassifierCV, CalibrationDisplay
from sklearn.inspection import permutation_importance
from sklearn.model_selection import LearningCurveDisplay, train_test_split

from manykernels import MKFDA, MKSVC
from manykernels.datasets import make_views
from manykernels.kernels import RBF

views, y, relevant = make_views(300, n_relevant=2, n_noise=1, signal=1.0, random_state=0)
train, test, y_train, y_test = train_test_split(views, y, stratify=y, random_state=0)
print(views)

# %%
# Would more samples help?
# ------------------------

fig, axes = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
LearningCurveDisplay.from_estimator(MKFDA(RBF()), views, y, cv=5, ax=axes[0])
axes[0].set_title("Learning curve")

# %%
# Probabilities of a support vector machine
# -----------------------------------------
# ``MKSVC`` has no probabilities. ``CalibratedClassifierCV`` adds them; ``MKSVCCV`` would do so
# itself.

calibrated = CalibratedClassifierCV(MKSVC(RBF()), cv=3).fit(train, y_train)
CalibrationDisplay.from_estimator(calibrated, test, y_test, n_bins=4, ax=axes[1])
axes[1].set_title("Calibration")

# %%
# Permutation importance
# ----------------------
# How much does the accuracy of a fitted model fall if the rows of a view are shuffled? Unlike in
# ``view_importance``, the model is not fitted again: a view whose information is in another view
# as well can be important here, although it is not needed.

model = MKFDA(RBF()).fit(train, y_train)
result = permutation_importance(model, test, y_test, n_repeats=20, random_state=0)
for name, mean, spread in zip(views, result.importances_mean, result.importances_std, strict=True):
    print(f"{name:<8} {mean:+.3f} ± {spread:.3f}")

axes[2].boxplot(result.importances.T, orientation="horizontal", tick_labels=list(views))
axes[2].axvline(0.0, color="#b8b8b8", linewidth=1)
axes[2].set(title="Permutation importance", xlabel="fall of the accuracy")
axes[2].invert_yaxis()
plt.show()
print(f"largest: {list(views)[int(np.argmax(result.importances_mean))]}")
