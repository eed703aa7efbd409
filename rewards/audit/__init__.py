"""Audit a task set: whether each task measures what it should, before a model is trained on it.

In: rows of problems, or folders of tasks (Harbor, Terminal-Bench, OpenEnv, verifiers). Out: for
each task a finding per check, with the check ids of OpenEnv where it names one.
A task set is not trusted: its files are read without following links, and nothing of it runs
outside the sandbox.
"""
