"""The scikit-learn face of the library."""

from .fda import MKFDA
from .fda_cv import MKFDACV
from .one_class import MKOneClassSVM
from .svc import MKSVC
from .svr import MKSVR

LocalizedFDA = LocalizedOneClassSVM = LocalizedSVC = LocalizedSVR = None
