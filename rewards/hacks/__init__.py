"""Answers that try to be paid without solving the task, one a file, written for the exploit battery.

The name says which of the battery's problems it answers (`call_`, `assert_`, `stdio_`) and how it cheats.
"""
