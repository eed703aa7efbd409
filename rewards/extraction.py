"""Extract the program or the final answer from a model's completion.

Rewards, scores, the gateway and agents use this module, so that they never disagree.

A completion is a thought, if the model writes one, then an answer: Markdown with blocks, or a bare
program (`blocks.py`).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from artifacts.parsing import parse
from problems.syntax import BLOCKS as PARTS
from problems.syntax import IMPORTS
from rewards.blocks import (
    BEGIN,
    PARSED,
    after_thought,
    blocks_of,
    free_names,
    indented,
    outside,
    parsed,
)
from sandbox.languages import LANGUAGES, PYTHON
from sandbox.languages.language import Language

DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_SPAN = re.compile(r"(`++)(?:python|py)?[ \t]*+([^\n`]++)\1(?!`)")
_INPUT = re.compile(r"\binput\s*\(|\bstdin\b|\bopen\s*\(\s*0\b|\bfileinput\b|\bos\.read\b")
# Lines before and after a program, as MBPP's prompt shows them; Python reads a list.
_MARK = re.compile(r"[ \t]*\[(BEGIN|DONE)\][ \t]*$", re.MULTILINE)
# Tags around a bare program, and special tokens.
_WRAP = re.compile(
    r"^[ \t]*(?:</?(?:answer|response|output|solution|code)>|<\|\w+\|>)"
    r"|(?:</(?:answer|response|output|solution|code)>|<\|\w+\|>)[ \t\r]*$",
    re.MULTILINE | re.IGNORECASE,
)
# The most that one completion is worth: blocks and lines to try.
BLOCKS, LINES = 100, 400


@lru_cache(maxsize=1024)  # judge, reward and record ask for the same completion
def extract_code(text: str, entry_point: str | None = None, language: str = PYTHON) -> str:
    """Return the program of a completion: the last block that can be the answer.

    In another language than Python that is the last block that is called so, else the last one.

    With an entry point (`add`, `Solution().add`) that is a block that defines it, otherwise one
    that reads the input, if possible one that needs no other block. Functions, classes and imports
    that it needs are taken of other blocks. So an example call, output or an empty block does not
    replace the program before it, and a correction does. Without such a block the last one of code
    is returned, without blocks the part of the text that is Python, else the text. "" for a thought
    that does not end.

    Accepts any text, such as 10 MB (time is linear) or lone surrogates.
    """
    if other := LANGUAGES.get(language):
        return _block(after_thought(text), other)
    return _unmarked(_program(after_thought(text), entry_point))


def _block(answer: str, language: Language) -> str:
    """Return the last block of this language, else the last one, else the text."""
    blocks = [block for block in blocks_of(answer) if block.content.strip()]
    named = [block for block in blocks if block.fence["info"].strip().lower() in language.fences]
    return next((block.content for block in reversed(named or blocks)), answer)


def _program(answer: str, entry_point: str | None) -> str:
    if parsed(answer):
        return answer  # a bare program, perhaps with a fence inside a docstring
    blocks = list(blocks_of(answer))
    last = blocks[-BLOCKS:]
    ranked = [
        (_rank(block.content, entry_point, block.python), block)
        for block in last
        if block.python is not None
    ]
    rank, best = max(reversed(ranked), key=lambda each: each[0], default=((False,), None))
    if best and rank[0] and not entry_point:
        return best.content
    if best and rank[0 if entry_point else 1]:
        others = [block.content for _, block in ranked if block is not best]
        code = _with_helpers(best.content, others)
        if rank[0] or _rank(code, None)[0]:
            return code
    bare = ""
    if best and not best.closed and entry_point:
        bare = _bare(best.content, entry_point)  # prose may follow where no fence ends the code
    if not bare:
        rest = _WRAP.sub("\n", outside(answer, blocks))
        bare = _bare(rest, entry_point) or _bare(indented(rest), entry_point)
        bare = bare or _span(rest, entry_point)
        if best and not entry_point and _rank(bare, None) <= rank:
            bare = ""
    # a block that is called something else, such as `text`
    named = (block.content for block in reversed(last) if block.python is None)
    bare = bare or next((code for code in named if _rank(code, entry_point)[0]), "")
    return bare or (best.content if best else answer)


def _with_helpers(code: str, others: Iterable[str]) -> str:
    """Return a program after the functions, classes and imports that it needs of other blocks."""
    tree = parsed(code)
    missing = free_names(tree) if tree and "__future__" not in code else set()
    known = {
        name: node
        for tree in filter(None, map(parsed, others))
        for node in tree.body
        for name in _names(node)
    }
    helpers = list[ast.stmt]()
    while found := dict.fromkeys(known.pop(name) for name in sorted(missing & known.keys())):
        helpers = [*found, *(node for node in helpers if node not in found)]
        missing = set().union(*map(free_names, found))
    return "".join(f"{ast.unparse(node)}\n\n" for node in helpers) + code


def _names(node: ast.stmt) -> list[str]:
    """Return the names that a definition or import binds."""
    match node:
        case ast.Import(names) | ast.ImportFrom(names=names):
            return [alias.asname or alias.name.partition(".")[0] for alias in names]
        case ast.FunctionDef(name) | ast.AsyncFunctionDef(name) | ast.ClassDef(name):
            return [name]
    return []


def _unmarked(code: str) -> str:
    """Return a program without the marks `[BEGIN]` and `[DONE]` at the ends of its lines.

    They stay where the program defines these names, or where only a text has them.
    """
    marks = set(_MARK.findall(code)) if len(code) <= PARSED else set()
    tree = parsed(code) if marks else None
    return _MARK.sub("", code) if tree and marks & free_names(tree) else code


def _rank(code: str, entry_point: str | None, python: bool | None = None) -> tuple[bool, ...]:
    """Return how well a block answers: the highest tuple is the best."""
    tree = parsed(code)
    tried = _defines(code, tree, entry_point) if entry_point else _reads_input(code, tree)
    whole = tree is not None and (bool(entry_point) or not free_names(tree))
    works = any(_works(node, bool(entry_point)) for node in (tree.body if tree and whole else ()))
    empty = not re.search(r"^[ \t]*[^\s#]", code, re.MULTILINE)
    can = tried and whole
    return (can, tried, works, not empty, bool(python) and not can)


def _works(node: ast.stmt, function: bool) -> bool:
    """Return whether a statement may be a part of the answer, a function or a program."""
    if isinstance(node, ast.Expr):
        return not function and isinstance(node.value, ast.Call)
    return not isinstance(node, (ast.Assert, *IMPORTS)) and not _is_stub(node)


def _is_stub(node: ast.stmt) -> bool:
    """Return whether a function or class is a signature alone: `def f(n): ...`."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return all(map(_is_stub, node.body))
        case ast.Raise(ast.Name("NotImplementedError") | ast.Call(ast.Name("NotImplementedError"))):
            return True
        case ast.Pass() | ast.Expr(ast.Constant()):
            return True
    return False


def _defines(code: str, tree: ast.Module | None, entry_point: str) -> bool:
    """Return whether a module defines a function, class or variable of this name, not from one
    that it has yet: `f = cache(f)`.
    """
    name = re.split(r"[.(]", entry_point)[0]
    if tree is None:
        pattern = rf"^[ \t]*(?:async[ \t]+)?(?:def|class)[ \t]+{re.escape(name)}\b"
        return bool(re.search(pattern, code, re.MULTILINE))
    for node in _statements(tree.body):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                defined = node.name == name
            case ast.Assign(targets, value):
                defined = any(isinstance(each, ast.Name) and each.id == name for each in targets)
                defined = defined and name not in _read(value)
            case ast.AnnAssign(ast.Name(id), value=ast.expr() as value):
                defined = id == name and name not in _read(value)
            case _:
                continue
        if defined:
            return True
    return False


def _statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a module, without those of its functions and classes."""
    for node in body:
        yield node
        if not isinstance(node, DEFINITIONS):
            for part in PARTS:
                yield from _statements(getattr(node, part, ()))


def _read(value: ast.expr) -> set[str]:
    """Return the names that are read while a value is computed."""
    return set() if isinstance(value, ast.Lambda) else free_names(value)


def _reads_input(code: str, tree: ast.Module | None) -> bool:
    """Return whether a program reads standard input. A comment, or a text, does not."""
    if tree is None:
        return bool(_INPUT.search(code))
    for node in ast.walk(tree):
        match node:
            case ast.Name("input" | "stdin" | "fileinput", ast.Load()):
                return True
            case ast.Attribute(attr="stdin", ctx=ast.Load()) | ast.Attribute(
                ast.Name("os"), "read"
            ):
                return True
            case ast.Constant("/dev/stdin") | ast.Call(args=[ast.Constant(0), *_]):
                return True  # a path, `open(0)`
    return False


def _bare(text: str, entry_point: str | None) -> str:
    """Return the lines of a text that are Python and answer best, or "".

    Prose before and after them is left out: where a parse fails, the statement of the failure ends
    the program.
    """
    if len(text) > PARSED:
        return ""
    lines, found = text.splitlines(keepends=True), list[str]()
    begins = [at for at, line in enumerate(lines) if BEGIN.match(line)]
    end = 0
    for at in begins[:LINES]:
        if at < end:
            continue
        end = _python_until(lines, at)
        code = "".join(lines[at:end])
        if end > at and (not entry_point or _defines(code, parsed(code), entry_point)):
            found.append(code)
    return max(reversed(found), key=lambda code: _rank(code, entry_point), default="")


def _span(text: str, entry_point: str | None) -> str:
    """Return the last code span of a text that can be the answer, or ""."""
    codes = [span[2] for span in _SPAN.finditer(text)][-BLOCKS:]
    return next((code for code in reversed(codes) if _rank(code, entry_point)[0]), "")


def _python_until(lines: list[str], begin: int) -> int:
    """Return the line before which the Python that begins here ends."""
    end = len(lines)
    for _ in range(8):
        try:
            parse("".join(lines[begin:end]))
            return end
        except SyntaxError as error:
            failed = begin + (error.lineno or 1) - 1
        except (ValueError, RecursionError, MemoryError):
            return begin
        end = min(failed, end - 1)
        while end > begin and not re.match(r"[^\s#)\]}]", lines[end]):
            end -= 1
    return begin


# Characters: where a final answer is searched, and how long it may be.
TAIL, LONGEST = 20_000, 300
_ANSWER = re.compile(
    r"(?:(?:^|[\n.!?])[^\w\n.!?]*+(?:so |thus |therefore,? )?(?:the )?(?:final )?"
    r"answer\b(?: is\b)?+[ \t*]*+(?:[:=→]|->)?[ \t*]*+(?:\n\s*+)?|####[ \t*]*+)(\S[^\n]*)",
    re.IGNORECASE,
)  # possessive quantifiers keep the time linear
_TAGGED = re.compile(r"<answer>((?:(?!</?answer>).)*+)</answer>", re.IGNORECASE | re.DOTALL)
_BOX = re.compile(
    r"\\(?:boxed|fbox)(?:\s*+\{"
    r"|(?![A-Za-z])[ \t]*+(?:(?P<formula>(?![A-Za-z]{3})[^\s{$.,;:)]"
    r"(?:(?!\s[A-Za-z]{3})[^\n$]){0,300}?)[ \t]*(?:\$|\\[)\]])"
    r"|(?P<number>[-+]?\d(?:[\d.,/]*\d)?)))"
)  # without braces: the rest of the formula, as MATH's grader reads it, or a number in a text


def extract_answer(text: str) -> str:
    """Return the final answer of a text, or of its last `<answer>`: the last `\\boxed{...}`.

    Otherwise the text of the last line "Answer: ..." or "#### ...", else a text of one short line.
    Return "" for a text without an answer, an answer longer than LONGEST, and a thought that does
    not end. Only the last answer is taken, so naming several gains nothing.
    """
    text = after_thought(text)[-TAIL:]
    text = next(reversed(_TAGGED.findall(text)), text)
    if boxes := list(_BOX.finditer(text)):
        box = boxes[-1]
        answer = box["formula"] or box["number"] or _braced(text, box.end())
        return answer if len(answer) <= LONGEST else ""
    answer = ""
    for match in _ANSWER.finditer(text):
        answer = match[1]
    marks = " \t\r*`"  # of Markdown
    answer = answer.strip(marks).removesuffix(".").strip(marks) if answer else text.strip()
    return answer if len(answer) <= LONGEST and "\n" not in answer else ""


def _braced(text: str, begin: int) -> str:
    """Return the text up to the closing brace; "" where there is none."""
    depth = 1
    for at in range(begin, min(len(text), begin + 10_000)):
        depth += (text[at] == "{") - (text[at] == "}")
        if depth == 0:
            return text[begin:at].strip()
    return ""
