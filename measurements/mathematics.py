"""Agreement of mathematics graders with judged pairs of answers.

    python -m measurements.mathematics [--each] [--ours] [FILE ...]

`tests/rewards/math_pairs.tsv` is always measured. A FILE is one of:
- a test of another grader (`test_*.py`), which is parsed and not run;
- a table with columns `verdict`, `right`, `answer`, `question`; `verdict` is AC or WA;
- a `*.jsonl` with a problem and its `answer` per line, like MATH. Each answer is rewritten in other
  usual forms, and each refused form counts as a false reject.
Other graders are measured if they are installed: math-verify, and those in verl.utils.reward_score.
"""

from __future__ import annotations

import argparse
import ast
import csv
import json
import logging
import re
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from rewards.extraction import extract_answer
from rewards.judging import judge
from rewards.question import Question
from sandbox.protocol import Verdict

OWN = Path(__file__).parents[1] / "tests" / "rewards" / "math_pairs.tsv"
LIMIT_S = 10  # wall time of a peer for one pair
FORMULA = re.compile(r"\$\$(.+?)\$\$|\\\[(.+?)\\\]|\\\((.+?)\\\)|\$(.+?)\$", re.DOTALL)
BOXED = re.compile(r"\\boxed\{((?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*)\}")


class Pair(NamedTuple):
    """A right answer, a given answer, whether the set calls them equal, and the question if any."""

    right: str
    given: str
    equal: bool
    question: str = ""


Grader = Callable[[list[Pair]], list[bool]]


def pairs_of(path: Path) -> list[Pair]:
    """Read the pairs of a test module, table or JSON lines file."""
    if path.suffix == ".jsonl":
        return list(rewritten(path))
    if path.suffix == ".py":
        return [
            Pair(final(right), final(given), equal)
            for right, given, equal in tested(ast.parse(path.read_text(encoding="utf-8")))
        ]
    with path.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE, restval=""))
    return [
        Pair(row["right"], row["answer"], row["verdict"] == "AC", row.get("question", ""))
        for row in rows
    ]


def tested(tree: ast.Module) -> Iterator[tuple[str, str, bool]]:
    """Yield the pairs of a test module.

    These are parametrized rows (right, given, expected), and `assertTrue(equal(a, b))` after the
    assignment of two texts.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "parametrize":
            rows = _literal(node.args[1])
            for row in rows if isinstance(rows, list) else ():
                if (
                    isinstance(row, tuple)
                    and len(row) >= 3
                    and isinstance(row[0], str)
                    and isinstance(row[1], str)
                    and row[2] in (True, False)
                ):
                    yield row[0], row[1], bool(row[2])
        if isinstance(node, ast.FunctionDef):
            yield from _asserted(node)


def _asserted(function: ast.FunctionDef) -> Iterator[tuple[str, str, bool]]:
    values: dict[str, object] = {}
    for statement in function.body:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            values[statement.targets[0].id] = _literal(statement.value)
        asserted = next(
            (
                node.func.attr
                for node in ast.walk(statement)
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
            ),
            "",
        )
        if asserted not in ("assertTrue", "assertFalse"):
            continue
        rows = (
            values.get("test_pairs")
            if isinstance(statement, ast.For)
            else [(values.get("test_in"), values.get("test_out"))]
        )
        for right, given in rows if isinstance(rows, list) else ():
            if isinstance(right, str) and isinstance(given, str):
                yield right, given, asserted == "assertTrue"


def _literal(node: ast.expr) -> object:
    with suppress(ValueError):
        return ast.literal_eval(node)
    return None


def rewritten(path: Path) -> Iterator[Pair]:
    """Yield right answers in other forms: with other LaTeX commands, with delimiters around them,
    and as sympy rewrites the expression that math-verify parses.
    """
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        right = str(row.get("answer") or extract_answer(row["solution"])).strip().strip("$")
        question = str(row.get("problem") or row.get("question"))
        forms = {
            f"${right}$",
            f"\\({right}\\)",
            right.replace("\\frac", "\\dfrac"),
            re.sub(r"\\d?frac\{(\d+)\}\{(\d+)\}", r"\1/\2", right),
        }
        if not re.search(
            r"[=<>,_:%]|\\(?:le|ge|ne|in|text|mbox|cup|circ|!)|[A-Za-z]{3}|\d\\frac",
            right.replace("\\frac", "").replace("\\sqrt", ""),
        ):
            forms |= {f"x = {right}"} | symbolic(right)
        yield from (Pair(right, form, True, question) for form in sorted(forms - {right}))


def symbolic(right: str) -> set[str]:
    """Return the forms that sympy writes: unchanged, expanded, factored, over one denominator, as
    plain text; of a fraction the decimal and an unreduced form.
    """
    import sympy
    from math_verify import LatexExtractionConfig, parse

    parsed = parse(
        f"\\boxed{{{right}}}",
        [LatexExtractionConfig(boxed_match_priority=0)],
        fallback_mode="no_fallback",
    )
    if not parsed or not isinstance(parsed[0], sympy.Expr):
        return set()
    value = parsed[0].doit()
    if value.is_Rational and max(abs(value.p), value.q) > 10**50:
        return set()
    if not value.is_Rational:
        rewrites = (sympy.expand, sympy.factor, sympy.together, sympy.radsimp)
        return {
            str(value).replace("**", "^"),
            sympy.latex(value),
            *(sympy.latex(rewrite(value)) for rewrite in rewrites),
        }
    if value.is_Integer:
        return {f"{value}.0", f"{int(value):,}"}
    decimal = (
        {str(sympy.N(value, 12)).rstrip("0")} if set(sympy.factorint(value.q)) <= {2, 5} else set()
    )
    return decimal | {f"{value}", f"\\frac{{{2 * value.p}}}{{{2 * value.q}}}"}


def final(text: str) -> str:
    """Return the final answer of a text from another project's test.

    This is all boxes of a short text, the last box of a long one, or else the last formula.
    """
    if len(text) < 300 and text.count("\\boxed") > 1:
        return ", ".join(BOXED.findall(text))
    if "\\boxed{" in text:
        return extract_answer(text)
    formulas = [next(filter(None, groups)) for groups in FORMULA.findall(text)]
    return text if not formulas or (len(formulas) > 1 and len(text) < 200) else formulas[-1]


def ours(pairs: list[Pair]) -> list[bool]:
    """Grade the pairs with Ratchet's own grader."""
    judged = judge(
        None,
        [
            (
                Question(str(at), pair.question, "math", (pair.right or " .",)),
                f"\\boxed{{{pair.given}}}",
            )
            for at, pair in enumerate(pairs)
        ],
    )
    return [one.report.verdict is Verdict.AC for one in judged]


def peers() -> dict[str, Grader]:
    """Return the installed graders. A pair on which a grader raises or times out is unequal."""
    graders: dict[str, Grader] = {}
    with suppress(ImportError):
        from math_verify import LatexExtractionConfig, parse, verify

        latex = [LatexExtractionConfig(boxed_match_priority=0)]

        def math_verify(right: str, given: str) -> bool:
            one, other = (
                parse(f"\\boxed{{{text}}}", latex, parsing_timeout=None) for text in (right, given)
            )
            return bool(verify(one, other, timeout_seconds=None))

        graders["math-verify"] = one_by_one(math_verify)
    with suppress(ImportError):
        from verl.utils.reward_score.math_dapo import normalize_final_answer
        from verl.utils.reward_score.math_reward import is_equiv
        from verl.utils.reward_score.prime_math import grade_answer

        graders["verl math (MATH's own)"] = one_by_one(is_equiv)
        graders["verl math_dapo (Minerva)"] = one_by_one(
            lambda right, given: normalize_final_answer(right) == normalize_final_answer(given)
        )
        graders["verl prime_math (PRM800K)"] = one_by_one(
            lambda right, given: bool(grade_answer(given, right))
        )
    return graders


def one_by_one(equal: Callable[[str, str], bool]) -> Grader:
    """Return a grader that compares one pair at a time, within LIMIT_S seconds each."""

    def raise_timeout(*_: object) -> None:
        raise TimeoutError

    def grade(pair: Pair) -> bool:
        signal.signal(signal.SIGALRM, raise_timeout)
        signal.alarm(LIMIT_S)
        try:
            return bool(equal(pair.right, pair.given))
        except Exception:
            return False
        finally:
            signal.alarm(0)

    return lambda pairs: [grade(pair) for pair in pairs]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--each", action="store_true", help="print the pairs that Ratchet grades differently"
    )
    parser.add_argument("--ours", action="store_true", help="measure only Ratchet's grader")
    parser.add_argument("files", type=Path, nargs="*")
    arguments = parser.parse_args()
    logging.disable(logging.CRITICAL)
    graders = {"ours": ours} | ({} if arguments.ours else peers())
    print(
        "| set | pairs | grader | agreement | false accepts | false rejects | seconds |\n"
        "|---|---|---|---|---|---|---|"
    )
    for path in [OWN, *arguments.files]:
        if not (pairs := pairs_of(path)):
            raise SystemExit(f"{path}: no pairs found")
        for name, grade in graders.items():
            begun = time.perf_counter()
            verdicts = grade(pairs)
            seconds = time.perf_counter() - begun
            accepts = sum(
                verdict and not pair.equal for verdict, pair in zip(verdicts, pairs, strict=True)
            )
            rejects = sum(
                pair.equal and not verdict for verdict, pair in zip(verdicts, pairs, strict=True)
            )
            agreement = 100 * (1 - (accepts + rejects) / len(pairs))
            print(
                (
                    f"| {path.stem} | {len(pairs)} | {name} | {agreement:.1f} % | {accepts} | "
                    f"{rejects} | {seconds:.1f} |"
                ),
                flush=True,
            )
            if arguments.each and grade is ours:
                for verdict, pair in zip(verdicts, pairs, strict=True):
                    if verdict != pair.equal:
                        print(
                            f"    {'accepted' if verdict else 'rejected'}: {pair.right} | "
                            f"{pair.given} {pair.question}"
                        )


if __name__ == "__main__":
    main()
