"""
Survival of groups of risk, and its calibration
===============================================

Three simulated tables of patients, of which genes and mutations are informative about their
survival and proteins are not. :class:`~manykernels.MKCoxCV` learns the weights of the kernels
along with the risks. Its predictions are judged on patients that it has not learnt from.
"""

# %%
# Half of the patients are censored: it is known only that they were alive when they were last
# seen. The model is fitted to 200 patients; 200 others are new.

import matplotlib.pyplot as plt
import numpy as np

from manykernels import MKCoxCV
from manykernels.datasets import make_survival_views
from manykernels.display import SurvivalCalibrationDisplay, SurvivalDisplay
from manykernels.metrics import concordance_interval

views, y, true_risk = make_survival_views(400, n_features=10, random_state=0)
train, new = np.arange(200), np.arange(200, 400)
model = MKCoxCV(ps=[1, 2], regs=[1, 10, 100]).fit(views.take(train), y[train])
print(f"{y['event'][train].sum()} of 200 died; p = {model.p_:g}, λ = {model.reg_:g}")
shares = model.weights_ / model.weights_.sum()
for name in views:
    share = sum(shares[j] for j, kernel in enumerate(model.kernel_names_) if name in kernel)
    print(f"{name}: {share:.0%} of the weight")

# %%
# The concordance index of patients that were held out in folds, of new patients, and of the true
# risks, which no model can surpass on average:


def told(name, rows, risk):
    result = concordance_interval(y["event"][rows], y["time"][rows], risk)
    print(f"{name:<12} {result.index:.2f} [{result.low:.2f}, {result.high:.2f}]")


risk = model.predict(views.take(new))
told("held out", train, model.left_out_predictions_)
told("new", new, risk)
told("true risks", new, true_risk[new])

# %%
# Left: Kaplan–Meier curves of thirds of the new patients, by predicted risk, with the numbers
# still observed. Right: predicted and observed probabilities of living longer than a year, in five
# groups of new patients. Points on the diagonal are calibrated.

fig, axes = plt.subplots(1, 2, figsize=(11, 4.6), width_ratios=[1.5, 1], layout="constrained")
SurvivalDisplay.from_predictions(y[new], risk, unit="months", ax=axes[0])
SurvivalCalibrationDisplay.from_estimator(
    model, views.take(new), y[new], 12, name="", unit="months", ax=axes[1]
)
plt.show()
