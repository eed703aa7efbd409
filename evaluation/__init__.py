"""Evaluation: the score of a checkpoint, and whether it is better than another.

In: a checkpoint folder (or an endpoint) and a benchmark. Out: a `Scorecard`, paired statistics, a
promotion decision with its reasons, a report.
"""
