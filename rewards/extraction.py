"""Extract the program or the final answer from a model's completion.

Rewards, scores, the gateway and agents use this module, so that they never disagree.

A completion is a thought, if the model writes one, then an answer: Markdown with blocks, or a bare
program. Blocks are fenced as in CommonMark 0.31.2, section 4.5, in list items and quotations too.
"""

from __future__ import annotations

import ast
import builtins
import re
from bisect import bisect
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import NamedTuple

from artifacts.parsing import parse
from problems.syntax import tree_of

# A model thinks between these. The prompt may have opened the thought. A tag inside a line, as in
# `text.split("</think>")`, belongs to a program.
_OPEN = r"<think>|<thinking>|<thought>|<reasoning>|\[THINK\]|<\|begin_of_thought\|>"
_CLOSE = r"</think>|</thinking>|</thought>|</reasoning>|\[/THINK\]|<\|end_of_thought\|>"
_TAG = re.compile(
    rf"^[ \t]*+(?:(?P<open>{_OPEN})|(?:{_CLOSE}))|(?:{_CLOSE})(?=[ \t\r]*+$)", re.MULTILINE
)
_WORDS = ("think", "THINK", "thought", "reasoning")  # one is in each tag; quick to look for
_FENCE = re.compile(
    r"^(?:(?P<lead>[ \t>]*+(?:(?:[-*+]|\d{1,9}[.)])[ \t]++)?+)(?=[`~])"  # of a list item
    r"|[^\n`]*+(?:`{1,2}+(?!`)[^\n`]*+)*+(?=`))"  # or quotation, or a sentence on the same line
    r"(?P<fence>`{3,}+|~{3,}+)(?P<info>[^\n`]*+)$",
    re.MULTILINE,
)
_PYTHON = re.compile(r"\{?[ .]*(?:i?python|(?:[\w./-]+\.)?py)[\d.]*(?![\w-])", re.IGNORECASE)
_SPAN = re.compile(r"(`++)(?:python|py)?[ \t]*+([^\n`]++)\1(?!`)")
_INPUT = re.compile(r"\binput\s*\(|\bstdin\b|\bopen\s*\(\s*0\b|\bfileinput\b|\bos\.read\b")
# How a bare program may begin.
_STATEMENT = re.compile(r"@|(?:from|import|def|class|async|for|while|if|with|try)\b")
_BEGIN = re.compile(rf"{_STATEMENT.pattern}|[A-Za-z_][\w, .]*(?:[-+*/|&]?=|\()")
# Lines before and after a program, as MBPP's prompt shows them; Python reads a list.
_MARK = re.compile(r"[ \t]*\[(BEGIN|DONE)\][ \t]*$", re.MULTILINE)
# The most that one completion is worth: characters to parse, blocks and lines to try.
PARSED, BLOCKS, LINES = 200_000, 100, 400


class Block(NamedTuple):
    """A fenced block of an answer."""

    fence: re.Match[str]  # its first line
    stop: int  # offset at which its content ends
    end: int  # offset after its closing fence
    closed: bool = True

    @property
    def begin(self) -> int:
        return self.fence.start()

    @property
    def python(self) -> bool | None:
        """Whether the info string says that it is Python; None: it names another language."""
        info = self.fence["info"].strip()
        return bool(_PYTHON.match(info)) or (None if info and not self._first_line else False)

    @property
    def content(self) -> str:
        """The text between the fences, without the indentation or marks of the list item or
        quotation that it is in. Code may begin on the line of the opening fence, and end on that
        of the closing one.
        """
        return self._first_line + self._rest

    @property
    def _first_line(self) -> str:
        """The code on the line of the opening fence."""
        info = self.fence["info"].strip()
        language = _PYTHON.match(info)
        line = f"{info[language.end() if language else 0 :].strip()}\n"
        if not _BEGIN.match(line) or (tree := _tree(line + self._rest)) is None:
            return ""
        rest = _tree(self._rest)
        needed = rest is None or _STATEMENT.match(line) or _foreign(tree) < _foreign(rest)
        return line if needed else ""

    @property
    def _rest(self) -> str:
        lead, rest = self.fence["lead"], self.fence.string[self.fence.end() + 1 : self.stop]
        if lead and ">" in lead:
            rest = re.sub(r"^[ \t]*(?:>[ \t]?)+", "", rest, flags=re.MULTILINE)
        # a model may indent the fence alone: the first line decides
        elif lead and (first := re.search(r"^([ \t]*)\S", rest, re.MULTILINE)):
            width = min(len(lead), len(first[1]))
            rest = re.sub(rf"^[ \t]{{0,{width}}}", "", rest, flags=re.MULTILINE)
        code, closing, _ = rest.partition(self.fence["fence"])
        return code if closing and _tree(rest) is None else rest


@lru_cache(maxsize=1024)  # judge, reward and record ask for the same completion
def extract_code(text: str, entry_point: str | None = None) -> str:
    """Return the program of a completion: the last block that can be the answer.

    With an entry point (`add`, `Solution().add`) that is a block that defines it, otherwise one
    that reads the input and needs no other block. So an example call, output or an empty block does
    not replace the program before it, and a correction does. Without such a block the last one of
    code is returned, without blocks the part of the text that is Python, else the text. "" for a
    thought that does not end.

    Accepts any text, such as 10 MB (time is linear) or lone surrogates.
    """
    return _unmarked(_program(after_thought(text), entry_point))


def _program(answer: str, entry_point: str | None) -> str:
    if _tree(answer):
        return answer  # a bare program, perhaps with a fence inside a docstring
    blocks = list(_blocks(answer))
    ranked = [
        (_rank(block.content, entry_point, block.python), block)
        for block in blocks[-BLOCKS:]
        if block.python is not None
    ]
    rank, best = max(reversed(ranked), key=lambda each: each[0], default=((False,), None))
    bare = ""
    if best and not best.closed and not rank[0] and entry_point:
        bare = _bare(best.content, entry_point)  # prose may follow where no fence ends the code
    if not bare and not rank[0]:
        outside = _outside(answer, blocks)
        bare = _bare(outside, entry_point) or _span(outside, entry_point)
        if best and not entry_point and _rank(bare, None) <= rank:
            bare = ""
    return bare or (best.content if best else answer)


def _unmarked(code: str) -> str:
    """Return a program without the marks `[BEGIN]` and `[DONE]` at the ends of its lines.

    They stay where the program defines these names, or where only a text has them.
    """
    marks = set(_MARK.findall(code)) if len(code) <= PARSED else set()
    tree = _tree(code) if marks else None
    return _MARK.sub("", code) if tree and marks & _foreign(tree) else code


def after_thought(text: str) -> str:
    """Return what follows the model's thoughts; "" if one does not end."""
    if not any(word in text for word in _WORDS) or not _TAG.search(text):
        return text
    blocks = list(_blocks(text))
    begins = [block.begin for block in blocks]
    program = cache(lambda at: blocks[at].closed and _tree(blocks[at].content) is not None)
    answer = at = 0
    while tag := _TAG.search(text, at):
        at = tag.end()
        before = bisect(begins, tag.start()) - 1
        if before >= 0 and tag.start() < blocks[before].end and program(before):
            continue
        if tag["open"]:
            if not (close := re.compile(_CLOSE).search(text, at)):
                return ""
            at = close.end()
        answer = at
    return text[answer:]


def _blocks(text: str) -> Iterator[Block]:
    """Yield the fenced blocks in order. A language begins a new block, even inside an open one."""
    opened: re.Match[str] | None = None
    for fence in _FENCE.finditer(text):
        info = fence["info"].strip()
        if fence["lead"] is None:
            ended = not opened or opened["fence"] in text[opened.end() : fence.start("fence")]
            if not ended or (info and not _PYTHON.fullmatch(info)):
                continue  # part of the program, or of the sentence
        elif opened and len(fence["lead"]) > len(opened["lead"] or "") + 3:
            continue  # part of the program, such as its docstring
        if opened and not info and fence["fence"].startswith(opened["fence"]):
            yield Block(opened, fence.start(), fence.end())
            opened = None
        elif not opened or info:
            if opened and opened["fence"] in text[opened.end() : fence.start()]:
                yield Block(opened, fence.start(), fence.start(), closed=False)
            opened = fence
    if opened:
        yield Block(opened, len(text), len(text), closed=False)


def _rank(code: str, entry_point: str | None, python: bool = False) -> tuple[bool, ...]:
    """Return how well a block answers: the highest tuple is the best."""
    tried = _defines(code, entry_point) if entry_point else bool(_INPUT.search(code))
    tree = _tree(code)
    whole = tree is not None and (bool(entry_point) or not _foreign(tree))
    statements = tree.body if tree and whole else []
    works = any(
        not isinstance(node, ast.Expr | ast.Assert) and not _is_stub(node) for node in statements
    )
    empty = not re.search(r"^[ \t]*[^\s#]", code, re.MULTILINE)
    can = tried and whole
    return (can, tried, works, not empty, python and not can)


def _is_stub(node: ast.stmt) -> bool:
    """Return whether a function or class is a signature alone: `def f(n): ...`."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return all(map(_is_stub, node.body))
    return isinstance(node, ast.Pass) or (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    )


def _defines(code: str, entry_point: str) -> bool:
    """Return whether a function, class or variable of this name is defined."""
    name = re.escape(re.split(r"[.(]", entry_point)[0])
    pattern = rf"^[ \t]*(?:async[ \t]+)?(?:def|class)[ \t]+{name}\b|^{name}[ \t]*(?::[^=\n]+)?=[^=]"
    return bool(re.search(pattern, code, re.MULTILINE))


def _tree(code: str) -> ast.Module | None:
    """Return the syntax tree; None for a text that is not Python, empty or very long."""
    return tree_of(code) if code.strip() and len(code) <= PARSED else None


def _foreign(tree: ast.Module) -> set[str]:
    """Return the names that a module reads and neither binds nor has built in."""
    read, bound = set(), {*dir(builtins), "__file__"}
    for node in ast.walk(tree):
        match node:
            case ast.Name(name, ast.Load()):
                read.add(name)
            case ast.Name(name):
                bound.add(name)
            case ast.ImportFrom(names=[ast.alias("*")]):
                return set()
            case ast.alias(name, asname):
                bound.add(asname or name.partition(".")[0])
            case ast.arg(name) | ast.FunctionDef(name) | ast.AsyncFunctionDef(name):
                bound.add(name)
            case ast.ClassDef(name) | ast.ExceptHandler(name=str(name)):
                bound.add(name)
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                bound.add(name)
            case ast.MatchMapping(rest=str(name)):
                bound.add(name)
    return read - bound


def _outside(text: str, blocks: list[Block]) -> str:
    """Return the text without its blocks."""
    begins = [*(block.begin for block in blocks), len(text)]
    ends = [0, *(block.end for block in blocks)]
    return "\n".join(text[end:begin] for end, begin in zip(ends, begins, strict=True))


def _bare(text: str, entry_point: str | None) -> str:
    """Return the lines of a text that are Python and answer best, or "".

    Prose before and after them is left out: where a parse fails, the statement of the failure ends
    the program.
    """
    if len(text) > PARSED:
        return ""
    lines, found = text.splitlines(keepends=True), list[str]()
    begins = [at for at, line in enumerate(lines) if _BEGIN.match(line)]
    end = 0
    for at in begins[:LINES]:
        if at < end:
            continue
        end = _python_until(lines, at)
        code = "".join(lines[at:end])
        if end > at and (not entry_point or _defines(code, entry_point)):
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
