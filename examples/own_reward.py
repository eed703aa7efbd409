"""Correctness by the share of hidden tests that pass, and a small bonus for short programs."""

import ast

from artifacts.parsing import parse
from problems.schema import Problem
from rewards.components.correctness import correctness
from rewards.extraction import extract_code
from rewards.own import format_of
from sandbox.protocol import Report

TASK = "code"
LINES = 12  # a program of this many lines or more gets no bonus


def reward(task: Problem, answer: str, report: Report) -> dict[str, float]:
    """Return the score and its components, each in [-1, 1].

    Only a passing program gets the bonus for shortness; otherwise the shortest wrong program would
    have the highest score.
    """
    right = correctness(report, dense=1.0, visible=task.visible_tests) or 0.0
    formed = format_of(task, answer, report)
    short = shortness(extract_code(answer, task.entry_point)) if right == 1.0 else -1.0
    return {
        "score": 0.85 * right + 0.1 * formed + 0.05 * short,
        "correctness": right,
        "format": formed,
        "short": short,
    }


def shortness(code: str) -> float:
    """Return 1 for an empty program, falling to 0 at LINES lines.

    Lines are those of `ast.unparse`, so that comments and layout do not count.
    """
    return max(0.0, 1.0 - len(ast.unparse(parse(code)).splitlines()) / LINES)
