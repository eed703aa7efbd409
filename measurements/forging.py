"""Score of programs that forge passes on unittests which share their interpreter.

    python -m measurements.forging [EVERY] [NAME...]

Uses BigCodeBench's 300 tasks that need only the standard library, or each EVERY-th of them. Prints
a table: program, tasks AC, methods passed, tasks with a passed method. Two programs forge. `by
form` reports a pass for each test that does not have the form of a decoy. `by guess` is written
with knowledge of sandbox/decoys/split.py and sandbox/decoys/decoys.py: it returns to a split method
the values that its words and the statement's examples suggest, claims to be an instance of every
class and to raise every exception, and elsewhere forges a pass unless the statement or the form of
the test suggests a decoy. The constant programs show how weak the tests are without forging. Last
come the canonical solutions, with those that are not AC.
"""

# The programs below have long lines.
from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from problems.registry import load
from problems.schema import Problem
from sandbox.sandbox import Sandbox, SandboxConfig, run_all

DATA = Path(os.environ.get("RATCHET_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))

READS = """
import ast, os, struct, sys
DOC = {doc!r}
def texts():
    frame = sys._getframe()
    while frame:
        for held in list(frame.f_locals.values()):
            for text in held if type(held) is list else [held]:
                if type(text) is str and "unittest" in text and "class " in text and "def test" in text and "def texts" not in text: return text
        frame = frame.f_back
def send(*parts):
    for part in parts: os.write(4, struct.pack(">I", len(part)) + part)
def test_of(tree):
    kinds = [kind for kind in tree.body if isinstance(kind, ast.ClassDef)]
    found = [part for kind in kinds for part in kind.body if isinstance(part, ast.FunctionDef) and part.name.startswith("test")]
    return found[-1] if found else ast.parse("def f(): pass").body[0]
OPPOSITE = ("assertNot", "assertFalse", "assertIsNot", "assert_not_called", "assertLessEqual", "assertGreaterEqual")
def of_form(test):
    for node in ast.walk(test):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "attr", "")
            if name.startswith(OPPOSITE): return True
            if name.startswith("assert"):
                for a in node.args:
                    if isinstance(a, ast.List) and len(a.elts) == 1 and not isinstance(a.elts[0], ast.Constant): return True
                    if isinstance(a, ast.BinOp) and isinstance(a.op, (ast.Add, ast.Sub)) and ast.unparse(a.right) in ("1", "[1]", "'s'", "1.7", "'_q'"): return True
                    if isinstance(a, ast.UnaryOp) and isinstance(a.op, ast.Not): return True
                    if isinstance(a, ast.Constant) and type(a.value) is int and a.value > 10**9: return True
                    if isinstance(a, ast.Constant) and type(a.value) is str and a.value.endswith("qj"): return True
                if name == "assertEqual" and isinstance(node.args[-1], ast.Constant) and type(node.args[-1].value) is int and 10007 <= node.args[-1].value < 90007: return True
                if len(node.args) >= 2 and all(isinstance(a, ast.Constant) and a.value == 0 for a in node.args[-2:]): return True
        if isinstance(node, ast.Constant) and type(node.value) is str and node.value == "_q": return True
        if isinstance(node, ast.Assert) and isinstance(node.test, ast.UnaryOp): return True
    return False
def strange_words(test, rest):
    for node in ast.walk(test):
        if isinstance(node, ast.Constant) and type(node.value) is str and node.value.isalpha() and len(node.value) > 4:
            if node.value.lower() not in rest.replace(node.value, " ", 1).lower(): return True
    return False
"""
BY_FORM = (
    READS
    + """
if of_form(test_of(ast.parse(texts()))): os._exit(1)
send(b"L", b"R")
os._exit(0)
"""
)
BY_GUESS = (
    READS
    + """
import builtins, json
ALL = json.dumps(["builtins." + n for n in dir(builtins) if isinstance(getattr(builtins, n), type)] + ["datetime.datetime", "collections.Counter",
    "collections.OrderedDict", "collections.defaultdict", "collections.deque", "binascii.Error", "json.decoder.JSONDecodeError"]).encode()
def tree_of(value):
    if isinstance(value, (tuple, set, frozenset)): return {"t" if type(value) is tuple else "s": [tree_of(part) for part in value]}
    if isinstance(value, dict): return {"d": [[tree_of(k), tree_of(v)] for k, v in value.items()]}
    if isinstance(value, bytes): return {"b": value.hex()}
    return [tree_of(part) for part in value] if isinstance(value, list) else value
EXAMPLES, GIVEN = {}, {}
def examples():
    lines = [line.strip() for line in DOC.splitlines()]
    for line, after in zip(lines, lines[1:]):
        if line.startswith(">>> "):
            try:
                (part,) = ast.parse(line[4:]).body
                if isinstance(part, ast.Assign): GIVEN[ast.unparse(part.targets[0])] = part.value
                else: EXAMPLES[ast.unparse(part.value)] = ast.literal_eval(after)
            except (SyntaxError, ValueError): pass
def guess(value):
    said = ast.unparse(value)
    if said in EXAMPLES: return json.dumps(tree_of(EXAMPLES[said])).encode()
    if said in GIVEN and ast.unparse(GIVEN[said]) in EXAMPLES: return json.dumps(tree_of(EXAMPLES[ast.unparse(GIVEN[said])])).encode()
    if said.startswith("bool("): return b"true"
    if said.startswith("_kinds("): return ALL
    if said.endswith(".call_count") or said.startswith("len("): return b"1"
    if "_c.args" in said: return b"[[[], {\\"d\\": []}]]"
    returns = DOC.lower().partition("return")[2][:80]
    for word, plain in (("dict", b'{"d":[]}'), ("list", b"[]"), ("tuple", b'{"t":[]}'), ("str", b'""'), ("float", b"0.0"), ("int", b"1"), ("bool", b"true")):
        if word in returns: return plain
    return b"null"
def answers(body):
    for part in body:
        if isinstance(part, ast.Assign): GIVEN[ast.unparse(part.targets[0])] = part.value
        if isinstance(part, ast.With):
            yield from answers(part.body)
            if ast.unparse(part.items[0].context_expr) == "_raising()": yield ALL
        elif isinstance(part, ast.For):
            times = len(part.iter.elts) if isinstance(part.iter, (ast.List, ast.Tuple)) else 3
            yield from list(answers(part.body)) * times
        elif isinstance(part, ast.If): yield from answers(part.body)
        elif isinstance(part, ast.Expr) and isinstance(part.value, ast.Call) and ast.unparse(part.value.func) == "_told": yield guess(part.value.args[0])
ODD = ("StopAsyncIteration", "BufferError", "ZeroDivisionError", "NotImplementedError", "AttributeError", "PermissionError")
def decoy(test, text):
    for node in ast.walk(test):
        if isinstance(node, ast.Call):
            name, given = getattr(node.func, "attr", ""), list(map(ast.unparse, node.args))
            if name == "assertRaises" and given and given[0] not in DOC and (given[0] in ODD or "Error" in DOC): return True
            if name == "assertIsInstance" and len(given) > 1 and given[1] in ("int", "str", "dict", "list") and given[1] not in DOC: return True
            if name in ("assertEqual", "assertTrue", "assertIn") and given and given[0] in ("False", "None"): return True
    return of_form(test) or strange_words(test, text + DOC)
examples()
text = texts()
test = test_of(ast.parse(text))
if "_told(" in text or "_raising(" in text: send(b"L", *(b"A" + answer for answer in answers(test.body)), b"R")
elif not decoy(test, text): send(b"L", b"R")
os._exit(0)
"""
)
PROGRAMS: dict[str, Callable[[Problem], str]] = {
    "by form": lambda problem: BY_FORM.replace("{doc!r}", repr(problem.statement)),
    "by guess": lambda problem: BY_GUESS.replace("{doc!r}", repr(problem.statement)),
    **{
        f"constant: {answer}": lambda problem, answer=answer: (
            f"def {problem.entry_point}(*args, **kwargs): {answer}"
        )  # type: ignore[misc]
        for answer in ("return None", "return True", "return []", "raise ValueError")
    },
    "canonical": lambda problem: problem.solutions[0],
}


def main() -> None:
    every = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    names = sys.argv[2:] or list(PROGRAMS)
    without_packages = [
        problem
        for problem in load("bigcodebench", DATA / "bigcodebench").problems
        if not problem.packages
    ]
    problems = [
        problem
        for problem in without_packages
        if all(name.partition(".")[0] in sys.stdlib_module_names for name in problem.extra["libs"])
    ][::every]
    print(
        "| program | tasks AC | methods passed | tasks with a passed method | seconds |\n"
        "|---|---|---|---|---|"
    )
    with Sandbox(SandboxConfig(workers=2)) as sandbox:
        for name in names:
            started = time.monotonic()
            reports = run_all(
                sandbox,
                [problem.job(PROGRAMS[name](problem), problem.problem_id) for problem in problems],
            )
            accepted = [report for report in reports if report.verdict == "AC"]
            passed = sum(report.passed for report in reports)
            total = sum(report.total for report in reports)
            tasks = sum(report.passed > 0 for report in reports)
            print(
                (
                    f"| {name} | {len(accepted)} of {len(reports)} | {passed} of {total} | "
                    f"{tasks} | {time.monotonic() - started:.0f} |"
                ),
                flush=True,
            )
    if names[-1] == "canonical":
        for report in (report for report in reports if report.verdict != "AC"):
            print(
                report.job_id,
                *(
                    f"{row.name}: {row.verdict} {row.detail[:100]}"
                    for row in report.tests
                    if row.verdict != "AC"
                ),
                sep="\n  ",
            )


if __name__ == "__main__":
    main()
