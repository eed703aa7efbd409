"""Split a completion into thoughts, fenced blocks of code and the text around them.

Blocks are fenced as in CommonMark 0.31.2, section 4.5, in list items and quotations too.
"""

from __future__ import annotations

import ast
import builtins
import re
from bisect import bisect
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from problems.syntax import tree_of

PARSED = 200_000  # characters: a longer text is not parsed
# A model thinks between these. The prompt may have opened the thought. A tag inside a line, as in
# `text.split("</think>")`, belongs to a program. A channel that is not final is a thought, too.
_NAMES = r"(?:think|thinking|thoughts?|reasoning|scratchpad|analysis|seed:think)"
_OPEN = (
    rf"(?i:<{_NAMES}(?:[ \t][^<>\n]*)?(?<!/)>)|\[THINK\]|◁think▷|<\|begin_of_thought\|>"
    r"|<\|START_THINKING\|>|<\|channel\|>(?!final)[^<\n]*+<\|message\|>"
)
_CLOSE = (
    rf"(?i:</{_NAMES}>)|\[/THINK\]|◁/think▷|<\|end_of_thought\|>|<\|END_THINKING\|>"
    r"|<\|channel\|>final[^<\n]*+<\|message\|>"
)
_TAG = re.compile(
    rf"^[ \t]*+(?:(?P<open>{_OPEN})|(?:{_CLOSE}))|(?:{_CLOSE})(?=[ \t\r]*+$)", re.MULTILINE
)
# One is in each tag; quick to look for, in megabytes of text too.
_WORDS = ("think", "thought", "reason", "scratch", "analysis", "<|channel")
_FENCE = re.compile(
    r"^(?:(?P<lead>[ \t>]*+(?:(?:[-*+]|\d{1,9}[.)])[ \t]++)?+)(?=[`~])"  # of a list item
    r"|[^\n`]*+(?:`{1,2}+(?!`)[^\n`]*+)*+(?=`))"  # or quotation, or a sentence on the same line
    r"(?P<fence>`{3,}+|~{3,}+)(?P<info>[^\n`]*+)$",
    re.MULTILINE,
)
_PYTHON = re.compile(r"\{?[ .]*(?:i?python|(?:[\w./-]+\.)?py)[\d.]*(?![\w-])", re.IGNORECASE)
# How a bare program may begin.
_STATEMENT = re.compile(r"@|(?:from|import|def|class|async|for|while|if|with|try)\b")
BEGIN = re.compile(rf"{_STATEMENT.pattern}|[A-Za-z_][\w, .]*(?:[-+*/|&]?=|\()")


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
        if not BEGIN.match(line) or (tree := parsed(line + self._rest)) is None:
            return ""
        rest = parsed(self._rest)
        needed = rest is None or _STATEMENT.match(line) or free_names(tree) < free_names(rest)
        return line if needed else ""

    @property
    def _rest(self) -> str:
        lead = self.fence["lead"] or ""
        rest = self.fence.string[self.fence.end() + 1 : self.stop]
        if ">" in lead:
            lead = lead.rpartition(">")[2].removeprefix(" ")
            rest = re.sub(r"^[ \t]*(?:>[ \t]?)+", "", rest, flags=re.MULTILINE)
        # a model may indent the fence alone: the first line decides
        if lead and (first := re.search(r"^([ \t]*)\S", rest, re.MULTILINE)):
            width = min(len(lead), len(first[1]))
            rest = re.sub(rf"^[ \t]{{0,{width}}}", "", rest, flags=re.MULTILINE)
        code, closing, _ = rest.partition(self.fence["fence"])
        return code if closing and parsed(rest) is None else rest


def after_thought(text: str) -> str:
    """Return what follows the model's thoughts; "" if one does not end."""
    folded = text.casefold()
    if not any(word in folded for word in _WORDS) or not _TAG.search(text):
        return text
    blocks = list(blocks_of(text))
    begins = [block.fence.start("fence") for block in blocks]
    program = cache(lambda at: blocks[at].closed and parsed(blocks[at].content) is not None)
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


def blocks_of(text: str) -> Iterator[Block]:
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


def outside(text: str, blocks: list[Block]) -> str:
    """Return the text without its blocks."""
    begins = [*(block.begin for block in blocks), len(text)]
    ends = [0, *(block.end for block in blocks)]
    return "\n".join(text[end:begin] for end, begin in zip(ends, begins, strict=True))


def indented(text: str) -> str:
    """Return the indented code of a text (CommonMark 0.31.2, section 4.4), other lines empty."""
    return re.sub(r"^(?: {4}|\t)|^(?! {4}|\t).*", "", text, flags=re.MULTILINE)


def parsed(code: str) -> ast.Module | None:
    """Return the syntax tree; None for a text that is not Python, empty or very long."""
    return tree_of(code) if code.strip() and len(code) <= PARSED else None


def free_names(tree: ast.AST) -> set[str]:
    """Return the names that a program reads and neither binds nor has built in."""
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
