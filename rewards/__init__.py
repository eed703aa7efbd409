"""Rewards of completions.

In: a completion and its problem. Out: a `Score` in [-1, 1] with its components, or no score when
judging failed.
Training and evaluation share extraction and scoring, so that a training curve and a scorecard never
disagree.
"""
