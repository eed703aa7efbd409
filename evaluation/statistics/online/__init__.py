"""Statistics of experiments on live traffic: two arms that serve requests at the same time.

In: one value for each user or request and its arm, in the order of exposure. Out: intervals and
tests, at a fixed horizon (welch.py) or valid at every moment (confidence_sequence.py).
"""
