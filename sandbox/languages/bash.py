"""Bash: a script that reads standard input."""

from __future__ import annotations

from sandbox.languages.language import Language

LANGUAGE = Language(
    "bash",
    "Bash",
    ("bash", "sh", "shell"),
    "program.sh",
    compile=("bash", "-n", "program.sh"),
    run=("bash", "program.sh"),
    example="read -r n; echo $((n))",
    idle=":",
    needs=("bash",),
    out_of_memory=(b"cannot allocate", b"Cannot allocate memory"),
    least={"processes": 4},
)
