"""
Which probabilities can be believed?
====================================

Of all samples with a predicted probability of 0.8, eight of ten should be of the class.
:class:`~manykernels.MKLogisticCV` optimises its probabilities directly;
:class:`~manykernels.MKFDACV` and :class:`~manykernels.MKSVCCV` calibrate theirs afterwards.
Calibration curves of scikit-learn compare them on new samples, along with naive Bayes, which is
overconfident.
"""

# %%
# Three simulated views are informative about two classes, each has a rotated copy, and two views
# are noise. Naive Bayes counts the copies as further evidence.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.calibration import CalibrationDisplay
from sklearn.metrics import brier_score_loss, log_loss
from sklearn.naive_bayes import GaussianNB

from manykernels import MKFDACV, MKSVCCV, MKLogisticCV
from manykernels.datasets import make_views

views, y, _ = make_views(1400, n_noise=2, n_copies=3, signal=0.9, random_state=1)
train, new = np.arange(200), np.arange(200, 1400)
models = {
    "MKLogisticCV": MKLogisticCV(ps=[1, 2]),
    "MKFDACV": MKFDACV(ps=[1, 2]),
    "MKSVCCV": MKSVCCV(ps=[1, 2], Cs=[0.1, 1, 10]),
}
for model in models.values():
    model.fit(views.take(train), y[train])
probabilities = {
    name: model.predict_proba(views.take(new))[:, 1] for name, model in models.items()
}
bayes = GaussianNB().fit(views.take(train).joined(), y[train])
probabilities["naive Bayes"] = bayes.predict_proba(views.take(new).joined())[:, 1]

# %%
# Log loss and Brier score are small if probabilities are right and far from one half. The classes
# are normally distributed, as a discriminant supposes, and :class:`~manykernels.MKFDACV` has the
# smallest of them here.

print(f"{'':<14}{'log loss':>10}{'Brier':>10}{'accuracy':>10}")
for name, values in probabilities.items():
    accuracy = np.mean((values > 0.5) == (y[new] == 1))
    scores = log_loss(y[new], values), brier_score_loss(y[new], values), accuracy
    print(f"{name:<14}" + "".join(f"{score:>10.3f}" for score in scores))

# %%
# Logistic regression knows from the held-out probabilities of its training samples how good it is:

known = models["MKLogisticCV"]
print(f"log loss of held-out samples {-known.left_out_score_:.3f}")

# %%
# Curves near the diagonal are calibrated. Below it at the right, and above it at the left,
# probabilities are too extreme.

fig, ax = plt.subplots(figsize=(6.4, 5), layout="constrained")
styles = dict(zip(probabilities, ("#2a6f97", "#c55a11", "#007a58", "#8a8a8a"), strict=True))
for name, values in probabilities.items():
    CalibrationDisplay.from_predictions(
        y[new], values, n_bins=10, strategy="quantile", name=name, ax=ax, color=styles[name]
    )
ax.set(xlabel="predicted probability", ylabel="share of samples")
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False)
plt.show()
