"""
HTML report of a model
======================

:func:`~manykernels.report` writes one HTML file with the importance of the views, its
uncertainty, and the accuracy of the model. The file needs neither network access nor scripts, so
it can be sent, printed and stored with the results.

In this example three views are informative about four classes, a fourth is a copy of the first,
and two are noise. The predictions are evaluated on new samples. For training samples the report
would use left-out predictions, never the training score.
"""

# %%
from pathlib import Path

import matplotlib.pyplot as plt
from sklearn.model_selection import train_test_split

from manykernels import MKFDA, report, view_importance
from manykernels.datasets import make_views
from manykernels.kernels import RBF

views, y, _ = make_views(600, n_classes=4, n_copies=1, n_noise=2, signal=2.0, random_state=0)
X_train, X_new, y_train, y_new = train_test_split(views, y, train_size=300, random_state=0)
model = MKFDA(RBF(), p=1.2, reg=1).fit(X_train, y_train)

# %%
# The importance of the views is computed from the training samples, the accuracy from new samples.
importance = view_importance(model, X_train, y_train, n_resamples=20)
page = report(model, X_new, y_new, importance=importance)
for answer in page.data["answers"]:
    print(f"{answer['question']} {answer['answer']}")
    print(f"    {answer['detail']}")

# %%
# ``page.data`` contains all results of the report and can be stored as JSON.
Path("out").mkdir(exist_ok=True)
page.save("out/report.html")
parts = ", ".join(name for name, part in page.data.items() if isinstance(part, dict))
print(f"out/report.html has {parts}.")

# %%
# One of the figures of the report: the importance of the views.
importance.plot()
plt.show()
