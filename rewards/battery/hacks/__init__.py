"""Completions that try to get a reward without solving the task, one a file.

They are written for the exploit battery. The file name says which of the battery's problems a
completion answers (`call_`, `assert_`, `stdio_`, `math_`, `qa_`) and how it cheats.
"""
