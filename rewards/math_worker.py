"""The process behind `rewards/mathematics.py`, run by its path.

Reads lines `{"right": [...], "answer": "..."}`, writes `equal`, `different` or `unreadable`.
Each line is decided in a fork with limits of CPU and memory, so that no answer can hurt another. Ends with its caller, whose pipe it reads.
"""

from __future__ import annotations

import json
import logging
import os
import resource
import sys

CPU_S, MEMORY = 1, 2 << 30
EQUAL, DIFFERENT, UNREADABLE = 0, 1, 2


def decide(right: list[str], answer: str) -> int:
    from math_verify import LatexExtractionConfig, parse, verify

    # LaTeX alone: the other reader of math-verify hands text to sympy's parse_expr, which evaluates it as Python
    latex = [LatexExtractionConfig(boxed_match_priority=0)]
    golds = [parse(f"\\boxed{{{text}}}", latex, parsing_timeout=None) for text in right]
    if not all(golds):
        return UNREADABLE
    given = parse(f"\\boxed{{{answer}}}", latex, parsing_timeout=None)
    return EQUAL if any(verify(gold, given, timeout_seconds=None) for gold in golds) else DIFFERENT


def forked(line: str) -> str:
    told = json.loads(line)
    child = os.fork()
    if child == 0:
        code = DIFFERENT
        try:
            resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            code = decide(told["right"], told["answer"])
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    exited = os.waitstatus_to_exitcode(status)
    return {EQUAL: "equal", UNREADABLE: "unreadable"}.get(exited, "different")  # killed at a limit: the answer's own doing


def main() -> None:
    logging.disable(logging.CRITICAL)
    decide(["1"], "\\frac{2}{2}")  # load and warm everything before the first fork
    for line in sys.stdin:
        print(forked(line), flush=True)


if __name__ == "__main__":
    main()
