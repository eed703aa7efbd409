"""Runs programs nobody trusts and says what they did.

In: a `Job` (a program, its tests, its limits). Out: a `Report` (a verdict, a result for each test, time and memory, the isolation in force).
Imports nothing else of Ratchet and would stand alone as a library.
"""
