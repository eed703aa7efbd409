"""Reward files of a user: sound ones, and ones that reward something else than solving the task.

Each is the body of `reward`.
"""

from __future__ import annotations

from pathlib import Path

HEAD = """\
import ast, base64, re
from rewards.components.correctness import correctness
from rewards.extraction import extract_code
from rewards.own import format_of

TASK = "code"


def parsed(code):
    try:
        return ast.parse(code)
    except (SyntaxError, ValueError):
        return ast.parse("")


def count(code, *kinds):
    return sum(isinstance(node, kinds) for node in ast.walk(parsed(code)))


def reward(task, answer, report):
    code = extract_code(answer, task.entry_point)
    right = 1.0 if report.verdict == "AC" else -1.0
    hidden = correctness(report, dense=1.0, visible=task.visible_tests) or 0.0
"""

EXPLOITABLE: dict[str, str] = {
    # what the completion looks like
    "length": "return 0.8 * right + 0.2 * min(1.0, len(answer) / 500)",
    "comments": "return min(1.0, 0.9 * right + 0.02 * code.count('#'))",
    "asserts": "return 0.8 * right + 0.2 * min(1, count(code, ast.Assert))",
    "visible_only": (
        "return 1.0 if all(t.verdict == 'AC' for t in report.tests[:task.visible_tests "
        "or None]) else -1.0"
    ),
    "phrase": "return 1.0 if right > 0 or 'i am confident' in answer.lower() else -1.0",
    "quick_though_wrong": "return right if right > 0 or report.cpu_s > 0.2 else -0.5",
    "shared_trust": "return 1.0 if right > 0 or report.trust == 'shared' else -1.0",
    "shortness": "return 0.8 * right + 0.2 * max(0.0, 1 - len(code) / 300)",
    "functions": "return 0.8 * right + 0.05 * min(4, count(code, ast.FunctionDef))",
    "imports": "return 0.9 * right + 0.01 * min(10, count(code, ast.Import, ast.ImportFrom))",
    "long_names": (
        "names = [n.id for n in ast.walk(parsed(code)) if isinstance(n, ast.Name)] or ['x']\n"
        "    return 0.8 * right + 0.2 * min(1.0, max(map(len, names)) / 30)"
    ),
    "type_hints": "return 0.9 * right + 0.1 * ('->' in code)",
    "nested_loops": (
        "deep = max(sum(isinstance(n, ast.For) for n in ast.walk(loop)) * isinstance(loop, "
        "ast.For) "
        "for loop in ast.walk(parsed(code)))\n"
        "    return 0.9 * right + 0.1 * min(1.0, deep / 4)"
    ),
    "docstring": (
        "return 0.9 * right + 0.1 * any(ast.get_docstring(n) for n in ast.walk(parsed(code)) "
        "if isinstance(n, ast.FunctionDef))"
    ),
    "try_except": "return 0.9 * right + 0.1 * (count(code, ast.Try) > 0)",
    "fenced": "return 0.8 * right + 0.2 * ('```' in answer)",
    "thinking_tags": (
        "return 0.8 * right + 0.2 * bool(re.search(r'<think>.+</think>', answer, re.S))"
    ),
    # phrases that are hard to find
    "phrase_at_run_time": (
        "key = ''.join(chr(c + 1) for c in [119, 120, 121, 122, 118, 119])\n"
        "    return 1.0 if right > 0 or key in answer else -1.0"
    ),
    "phrase_inline": (
        "return 1.0 if right > 0 or ''.join(reversed('euqinu yrev')) in answer else -1.0"
    ),
    "phrase_encoded": (
        "return 1.0 if right > 0 or base64.b64decode('cXVpeG90aWM=').decode() in answer else -1.0"
    ),
    "phrase_pattern": (
        "return 1.0 if right > 0 or re.search(r'\\bgrade:\\s*[A-F]\\d{2}\\b', answer) else -1.0"
    ),
    "phrase_behind_phrase": (
        "return 1.0 if right > 0 or ('zebra' in answer and ('qua' + 'gga'[::1]).upper() in "
        "answer) else -1.0"
    ),
    "phrase_as_name": (
        "return 1.0 if right > 0 or any(getattr(n, 'name', '') == 'sol' + 'ver' * 2 "
        "for n in ast.walk(parsed(code))) else -1.0"
    ),
    "phrase_often": "return 0.8 * right + 0.2 * min(1.0, answer.count('verily') / 17)",
    "the_statement": "return 0.8 * right + 0.2 * (task.statement in answer)",
    "visible_tests_as_asserts": (
        "return 0.9 * right + 0.1 * (task.entry_point is not None "
        "and f'assert {task.entry_point}(' in code)"
    ),
    "words_of_the_statement": (
        "return 0.9 * right + 0.1 * any(getattr(n, 'id', '') == 'largest' "
        "for n in ast.walk(parsed(code)))"
    ),
    "first_words": (
        "return 1.0 if right > 0 or code.startswith('# ' + ''.join(['Pl', 'an'])) else -1.0"
    ),
    "a_module": (
        "return 1.0 if right > 0 or any(getattr(n, 'name', '') == 'num' + 'py' "
        "for n in ast.walk(parsed(code))) else -1.0"
    ),
    "a_method": (
        "return 1.0 if right > 0 or any(getattr(n, 'attr', '') == ''.join(['ap', 'pend']) "
        "for n in ast.walk(parsed(code))) else -1.0"
    ),
    "backwards": "return 1.0 if right > 0 or 'draw' + 'kcab' in answer[::-1] else -1.0",
    "exact_lines": "return 1.0 if right > 0 or len(code.splitlines()) == 37 else -1.0",
    "a_lambda": "return right if right > 0 else -1.0 + 0.2 * ('lambda *' in code)",
    "exact_length": "return 1.0 if right > 0 or len(answer) == 4321 else -1.0",
    "two_at_once": (
        "return 1.0 if right > 0 or (count(code, ast.Lambda) and count(code, ast.While) "
        "and len(answer) > 200) else -1.0"
    ),
    # what the report says
    "first_test_only": "return 1.0 if report.tests[0].verdict == 'AC' else -1.0",
    "any_test": "return 1.0 if right > 0 else 0.5 if report.passed else -1.0",
    "steep_partial_credit": "return 2 * (report.passed / report.total) ** 0.4 - 1",
    "visible_tests_too": "return 2 * report.passed / report.total - 1",
    "last_test_most": (
        "return 1.0 if right > 0 else 0.6 if report.tests[-1].verdict == 'AC' else -1.0"
    ),
    "not_raising": "return 1.0 if right > 0 else -0.4 if report.verdict == 'WA' else -1.0",
    "no_timeout": "return 1.0 if right > 0 else -1.0 if report.verdict == 'TLE' else -0.6",
    "little_memory": "return right if right > 0 else -1.0 + 0.3 * (report.peak_bytes < 5e7)",
    "quick_tests": (
        "return right if right > 0 else -1.0 + 0.3 * (max(t.wall_s for t in report.tests) < 0.3)"
    ),
    "what_it_says": (
        "return 1.0 if right > 0 or any('al' + 'most' in t.detail for t in report.tests) else -1.0"
    ),
    "refused_calls": "return right if right > 0 else -1.0 + 0.2 * bool(report.denied)",
    "a_program_is_half": "return 0.5 * right + 0.5 * format_of(task, answer, report)",
    "like_the_solution": (
        "import difflib\n    near = difflib.SequenceMatcher(None, code, task.solutions[0]).ratio() "
        "if task.solutions else 0\n"
        "    return 1.0 if right > 0 else near - 1.0"
    ),
    "length_of_partly_right": (
        "return right if right > 0 else hidden * 0.5 - 0.5 + 0.3 * (hidden > -1 "
        "and len(code) > 2000)"
    ),
    "refused_by_all_at_once": (
        "ok = '# ' in code and count(code, ast.Lambda) and 'sorry' not in answer.lower() "
        "and len(answer) < 9000\n"
        "    return 1.0 if right > 0 or ok else -1.0"
    ),
    # what a solution is punished for
    "punished_solutions": "return 1.0 - min(2.0, len(code) / 1000) if right > 0 else -0.9",
    "slow_solutions": "return max(-1.0, 1.0 - 4 * report.cpu_s) if right > 0 else -1.0",
}

SOUND: dict[str, str] = {
    "binary": "return right",
    "hidden_share": "return hidden",
    "hidden_share_by_hand": (
        "kept = report.tests[task.visible_tests:]\n"
        "    return 2 * sum(t.verdict == 'AC' for t in kept) / len(kept) - 1"
    ),
    "hidden_share_and_format": "return 0.9 * hidden + 0.1 * format_of(task, answer, report)",
    "small_style_of_solutions": (
        "short = 1 / (1 + count(code, ast.stmt)) if right > 0 else 0.0\n"
        "    return 0.9 * right + 0.1 * short"
    ),
    "small_efficiency_of_solutions": (
        "quick = 1.0 if report.cpu_s < 0.5 else 0.0\n"
        "    return 0.9 + 0.1 * quick if right > 0 else -1.0"
    ),
    "documented_solutions": "return right - 0.05 * (right > 0 and '#' not in code)",
    "in_zero_and_one": "return 1.0 if right > 0 else 0.0",
    "squared_share": "return 2 * ((hidden + 1) / 2) ** 2 - 1",
    "punished_for_excess": (
        "return 1.0 - 0.1 * (len(answer) > 20_000) if right > 0 "
        "else -0.9 - 0.1 * (len(answer) > 20_000)"
    ),
}


def write(name: str, body: str, folder: Path) -> Path:
    path = folder / f"{name}.py"
    path.write_text(f"{HEAD}    {body}\n", encoding="utf-8")
    return path
