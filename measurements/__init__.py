"""Scripts that measure speed, memory, cost and learning: one per subject, each prints a table.

Run with `python -m measurements.NAME`.
"""
