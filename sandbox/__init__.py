"""Runs untrusted programs against tests and reports the results.

Input: a `Job` (a program, its tests, its limits). Output: a `Report` (a verdict, a result for each
test, time, memory, and the isolation in force).
The package imports nothing else of Ratchet and can be used as a library of its own.
"""
