"""Speed, memory, cost and learning: one script a subject, each prints a table. Run with `python -m
measurements.NAME`.
"""
