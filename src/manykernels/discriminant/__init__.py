"""From class labels to regression targets, and from regression outputs back to classes.

============  ===============================================================================
`problem`     Fisher's problem on kernels with class labels, and rules for class scores
`decision`    the choice of the rule, and calibrated probabilities
============  ===============================================================================
"""
