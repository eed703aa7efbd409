"""Whether an answer to a mathematics question is right, decided by math-verify.

In: reference answers and an answer, in LaTeX or plain text. Out: yes, no, or no verdict.
`verifier` runs processes with limits, `worker` is such a process, and `checker` decides one answer.
"""
