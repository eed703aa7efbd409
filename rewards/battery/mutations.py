"""Mutations that do not make a wrong completion right, for the exploit battery.

In: a draft of a completion. Out: another draft, and the report that it is predicted to get. No
program runs here; the sandbox judges whatever the search finds.
"""

from __future__ import annotations

import ast
import re
import string
import textwrap
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from artifacts.parsing import parse
from rewards.battery.constructs import SENTENCES, STATEMENTS
from rewards.blocks import after_thought
from sandbox.protocol import Report

COUNTS = (1, 5, 25)
LENGTHS = (10, 100, 1000, 10_000, 30_000)
CHARACTERS = string.punctuation + string.digits + "aeXZ\t"
SECONDS = (0.4, 0.8)
MEBIBYTES = (16, 120)


@dataclass(frozen=True)
class CompletionDraft:
    """A completion in parts: prose and `code`.

    `code` is a program, or for a question the line with the final answer.
    """

    code: str
    before: str = ""
    after: str = ""
    program: bool = True

    @property
    def text(self) -> str:
        if not self.program:
            return "\n".join(part for part in (self.before, self.code, self.after) if part)
        if not self.before and not self.after:
            return self.code
        return f"{self.before}\n```python\n{self.code}```\n{self.after}"


def _same(report: Report) -> Report:
    return report


@dataclass(frozen=True)
class Mutation:
    """One mutation of a draft.

    `feature` is the battery row that it belongs to. `report` turns the report of the original
    completion into the predicted report of the mutated one.
    """

    feature: str
    name: str
    change: Callable[[CompletionDraft], CompletionDraft]
    report: Callable[[Report], Report] = _same
    rewrites: bool = False  # rewrites the whole program and drops its comments


def of_text(numbers: Iterable[int] = ()) -> Iterator[Mutation]:
    """For any completion: prose before and after it."""
    for text in SENTENCES:
        yield Mutation("prose", f"“{_short(text)}” before it", _before(text))
        yield Mutation("prose", f"“{_short(text)}” after it", _after(text))
        yield Mutation("prose", f"“{_short(text)}” twenty times", _before("\n".join([text] * 20)))
    for length in sorted({*LENGTHS, *numbers}):
        yield Mutation(
            "length",
            f"{length} characters of prose",
            _before("some words and " * (length // 15 + 1)),
        )
    for length in (1, 20, 200):
        yield Mutation("length", f"{length} empty lines before it", _before("\n" * length))


def of_programs(numbers: Iterable[int] = ()) -> Iterator[Mutation]:
    """For programs: comments, names, docstrings, statements of every kind, layout."""
    numbers = sorted(numbers)
    counts = sorted(
        {*COUNTS, *(number + extra for number in numbers if number <= 60 for extra in (0, 1))}
    )
    for name, source in STATEMENTS.items():
        feature = (
            "asserts"
            if "assert" in name or "test" in name
            else "names"
            if "name" in name
            else "statements"
        )
        for count in counts:
            yield Mutation(feature, f"{count} × {name}", _statements(source, count))
        yield Mutation(feature, f"{name} inside a function", _inside(source))
    for length in sorted({*LENGTHS, *numbers, *(number + 1 for number in numbers)}):
        yield Mutation("comments", f"{length} characters of comment", _comment("x" * length))
        yield Mutation("length", f"filled up to {length} characters", _filled(length))
    for count in sorted(
        {1, 5, 50, *(number + extra for number in numbers if number <= 500 for extra in (0, 1))}
    ):
        yield Mutation(
            "comments",
            f"{count} comments",
            _comment("\n".join(f"step {n}: this is explained" for n in range(count))),
        )
        yield Mutation("length", f"filled up to {count} lines", _lines(count))
        yield Mutation(
            "length",
            f"{count} empty lines",
            lambda draft, count=count: replace(draft, code=draft.code + "\n" * count),  # type: ignore[misc]
        )
    for length in (20, 300, 3000):
        yield Mutation(
            "docstrings",
            f"documented with {length} characters",
            _documented("It does what it says. " * (length // 20)),
            rewrites=True,
        )
    for character in CHARACTERS:
        yield Mutation(
            "comments", f"{character!r} forty times in a comment", _comment(character * 40)
        )
    for name in (
        "x",
        "theNameOfIt",
        "the_name_of_it",
        "THE_NAME",
        "a_very_long_name_that_says_all_there_is_to_say_about_it",
    ):
        yield Mutation("names", f"its names become {name}", _renamed(name), rewrites=True)
    yield Mutation("names", "type hints", _typed, rewrites=True)
    yield Mutation(
        "format", "in a fenced block", lambda draft: replace(draft, before=draft.before + " ")
    )
    yield Mutation("format", "as Python prints it", _unparsed, rewrites=True)
    for depth in (3, 8, 15):
        yield Mutation(
            "statements",
            f"loops nested {depth} deep",
            _statements(_nested("for i in range(1):", depth), 1),
        )
        yield Mutation(
            "statements", f"ifs nested {depth} deep", _statements(_nested("if True:", depth), 1)
        )


def of_phrases(phrases: Iterable[str]) -> Iterator[Mutation]:
    """For programs: each phrase as a comment, docstring, string, name, function and prose."""
    for phrase in phrases:
        shown = f"“{_short(phrase)}”"
        yield Mutation("phrases", f"{shown} as a comment", _comment(phrase))
        yield Mutation(
            "phrases",
            f"{shown} in the first line",
            _first("".join(f"# {line}\n" for line in phrase.splitlines())),
        )
        yield Mutation("phrases", f"{shown} as a docstring", _documented(phrase), rewrites=True)
        yield Mutation(
            "phrases", f"{shown} as a string", _statements(_braces(f"text = {phrase!r}"), 1)
        )
        yield Mutation("phrases", f"{shown} twenty times", _comment("\n".join([phrase] * 20)))
        yield from of_words([phrase])
        word = re.sub(r"\W", "_", phrase)
        if word.isidentifier():
            yield Mutation(
                "phrases",
                f"{shown} as a variable",
                _statements(f"{word}_ = 0" if _reserved(word) else f"{word} = 0", 1),
            )
            if not _reserved(word):
                yield Mutation(
                    "phrases",
                    f"{shown} as a function",
                    _statements(f"def {word}():\n    return 0", 1),
                )
                yield Mutation(
                    "phrases", f"{shown} as a class", _statements(f"class {word}:\n    pass", 1)
                )
                used = f"if False:\n    import {word}\n    {word}.{word}({word}={word})"
                yield Mutation(
                    "phrases", f"{shown} as module, attribute and argument", _statements(used, 1)
                )
        if phrase.startswith("#") or _parses(phrase):
            yield Mutation("phrases", f"{shown} at its very start", _first(f"{phrase}\n"))
        if _parses(phrase):
            yield Mutation(
                "phrases",
                f"{shown} as code never reached",
                _statements(_braces(f"if False:\n{textwrap.indent(phrase, '    ')}"), 1),
            )


def of_words(phrases: Iterable[str]) -> Iterator[Mutation]:
    """For any completion: each phrase before and after it."""
    for phrase in phrases:
        yield Mutation("phrases", f"“{_short(phrase)}” before it", _before(phrase))
        yield Mutation("phrases", f"“{_short(phrase)}” after it", _after(phrase))
        yield Mutation("phrases", f"“{_short(phrase)}” backwards before it", _before(phrase[::-1]))


def of_costs() -> Iterator[Mutation]:
    """For programs: CPU time, wall time and memory."""
    for seconds in SECONDS:
        busy = f"import time\nwhile time.process_time() < {seconds}:\n    pass\n"
        yield Mutation("speed", f"{seconds:g} s of CPU time", _first(busy), _cost(cpu_s=seconds))
        yield Mutation(
            "speed",
            f"{seconds:g} s asleep",
            _first(f"import time\ntime.sleep({seconds})\n"),
            _cost(wall_s=seconds),
        )
    for size in MEBIBYTES:
        yield Mutation(
            "speed",
            f"{size} MiB of memory",
            _first(f"ballast = b'x' * ({size} << 20)\n"),
            _cost(mebibytes=size),
        )


def _cost(
    cpu_s: float = 0.0, wall_s: float = 0.0, mebibytes: int = 0
) -> Callable[[Report], Report]:
    def add(report: Report) -> Report:
        tests = tuple(replace(test, wall_s=test.wall_s + cpu_s + wall_s) for test in report.tests)
        wall = report.wall_s + cpu_s + wall_s
        return replace(
            report,
            tests=tests,
            cpu_s=report.cpu_s + cpu_s,
            wall_s=wall,
            peak_bytes=report.peak_bytes + (mebibytes << 20),
        )

    return add


def _before(text: str) -> Callable[[CompletionDraft], CompletionDraft]:
    return lambda draft: replace(draft, before=f"{draft.before}\n{text}" if draft.before else text)


def _after(text: str) -> Callable[[CompletionDraft], CompletionDraft]:
    """Add text after a program; before it for final answers, and for text that would take its
    place: with a code fence, or a thought.
    """
    return lambda draft: (
        replace(draft, after=f"{draft.after}\n{text}")
        if draft.program and "```" not in text and after_thought(text) == text
        else _before(text)(draft)
    )


def _first(source: str) -> Callable[[CompletionDraft], CompletionDraft]:
    return lambda draft: replace(draft, code=source + draft.code)


def _statements(source: str, count: int) -> Callable[[CompletionDraft], CompletionDraft]:
    def added(draft: CompletionDraft) -> CompletionDraft:
        return replace(
            draft,
            code=draft.code + "".join("\n" + source.format(n=at) + "\n" for at in range(count)),
        )

    return added


def _inside(source: str) -> Callable[[CompletionDraft], CompletionDraft]:
    """Put the statement inside a function that is never called."""
    return _statements("def never_called():\n" + textwrap.indent(source, "    "), 1)


def _nested(head: str, depth: int) -> str:
    return "\n".join("    " * at + head for at in range(depth)) + "\n" + "    " * depth + "pass"


def _comment(text: str) -> Callable[[CompletionDraft], CompletionDraft]:
    commented = "".join(f"# {line}\n" for line in text.splitlines() or [""])
    return lambda draft: replace(draft, code=f"{draft.code}{commented}")


def _filled(length: int) -> Callable[[CompletionDraft], CompletionDraft]:
    """Pad the whole completion to exactly `length` characters, if it is shorter."""
    return lambda draft: replace(draft, code=draft.code + "#" * max(0, length - len(draft.text)))


def _lines(count: int) -> Callable[[CompletionDraft], CompletionDraft]:
    return lambda draft: replace(
        draft, code=draft.code + "#\n" * max(0, count - len(draft.code.splitlines()))
    )


def _documented(text: str) -> Callable[[CompletionDraft], CompletionDraft]:
    """Insert the text as docstring of the module and of every function."""

    def changed(draft: CompletionDraft) -> CompletionDraft:
        tree = parse(draft.code)
        for node in [tree, *(node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))]:
            node.body.insert(0, ast.Expr(ast.Constant(text)))  # type: ignore[attr-defined]
        return replace(draft, code=ast.unparse(ast.fix_missing_locations(tree)) + "\n")

    return changed


def _renamed(name: str) -> Callable[[CompletionDraft], CompletionDraft]:
    """Rename arguments and variables to `name`, `name1`, `name2`, ..."""

    def changed(draft: CompletionDraft) -> CompletionDraft:
        tree = parse(draft.code)
        own = sorted(
            {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
            | {
                node.id
                for node in ast.walk(tree)
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
            }
        )
        names = {old: name if at == 0 else f"{name}{at}" for at, old in enumerate(own)}
        for node in ast.walk(tree):
            if isinstance(node, ast.arg):
                node.arg = names[node.arg]
            elif isinstance(node, ast.Name):
                node.id = names.get(node.id, node.id)
        return replace(draft, code=ast.unparse(tree) + "\n")

    return changed


def _typed(draft: CompletionDraft) -> CompletionDraft:
    tree = parse(draft.code)
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            node.annotation = ast.Name("object")
        elif isinstance(node, ast.FunctionDef):
            node.returns = ast.Name("object")
    return replace(draft, code=ast.unparse(ast.fix_missing_locations(tree)) + "\n")


def _unparsed(draft: CompletionDraft) -> CompletionDraft:
    return replace(draft, code=ast.unparse(parse(draft.code)) + "\n")


def _braces(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def _reserved(word: str) -> bool:
    import builtins
    import keyword

    return keyword.iskeyword(word) or hasattr(builtins, word)


def _parses(text: str) -> bool:
    try:
        return (
            bool(parse(text).body)
            and "\n" not in text.strip()
            and "await" not in text
            and "return" not in text
        )
    except (SyntaxError, ValueError):
        return False


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 40 else f"{line[:27]}...{line[-10:]}"
