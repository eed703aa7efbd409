"""Logs of other evaluation tools as scorecards, one file a tool; `registry.py` finds them.

In: a file that Inspect, lm-evaluation-harness, EvalPlus or BigCodeBench wrote. Out: a `Scorecard`.
"""
