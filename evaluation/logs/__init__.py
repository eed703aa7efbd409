"""Logs of other evaluation tools as scorecards, one file a tool; `registry.py` finds them.

In: a file that the tool wrote. Out: a `Scorecard`.
"""
