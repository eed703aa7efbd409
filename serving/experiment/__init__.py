"""Experiments on live traffic: who gets which arm, what guards users, and what follows from it.

In: users, their requests' values and votes. Out: an arm for each request, and a decision with its
reasons. The statistics are those of `evaluation.statistics.online`.
"""
