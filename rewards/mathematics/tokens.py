"""Split a mathematical answer into tokens: numbers, letters, known names, signs, words."""

from __future__ import annotations

import re

from rewards.mathematics.text import UNITS
from rewards.mathematics.tree import Unreadable

_FUNCTIONS = (
    "sin cos tan cot sec csc arcsin arccos arctan arccot arcsec arccsc sinh cosh tanh arcsinh "
    "arccosh arctanh ln log lg exp"
)
_GREEK = (
    "alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa lambda mu "
    "nu xi rho varrho sigma tau upsilon phi varphi"
    " chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega"
)
FUNCTIONS, GREEK = frozenset(_FUNCTIONS.split()), frozenset(_GREEK.split())
LETTERS = GREEK | {"ell", "hbar", "angle", "triangle", "square", "partial"}
ALIASES = {
    "asin": "arcsin",
    "acos": "arccos",
    "atan": "arctan",
    "tg": "tan",
    "ctg": "cot",
    "arctg": "arctan",
}
CONSTANTS = {"pi": "pi", "infty": "infty", "infinity": "infty", "inf": "infty", "oo": "infty"}
DECORATIONS = frozenset(
    ["vec", "overrightarrow", "bar", "overline", "hat", "widehat", "tilde", "dot"]
)
MATRICES = re.compile(
    r"\\begin\{([pbvV]?matrix|array)\}(?:\{[lcr|]*\})?(.*?)\\end\{\1\}", re.DOTALL
)
# kind (number, letter, function, command, sign, text, unit, matrix) and text
Token = tuple[str, str]
_TOKEN = re.compile(
    r"(?P<matrix>\\begin\{[a-zA-Z]+\})|(?P<text>\\text\{)|(?P<command>\\[A-Za-z]+)"
    r"|(?P<brace>\\[{}|\\])|(?P<unequal>(?<=[\sA-Za-z])!=)"
    r"|(?P<number>(?:\d+(?:\.\d+|\.(?=\s*\\overline))?|\.\d+)(?:[eE][+-]?\d+(?![\d.]))?)"
    r"|(?P<word>[A-Za-z]+)|(?P<space>\s+)|(?P<sign>.)"
)


def tokens(text: str) -> list[Token]:
    """Return the tokens of a cleaned text. Raises Unreadable."""
    result: list[Token] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise Unreadable(text[at])
        kind, piece, at = match.lastgroup, match[0], match.end()
        if kind == "matrix":
            whole = MATRICES.match(text, match.start())
            if whole is None:
                raise Unreadable("matrix")
            result.append(("matrix", whole[2]))
            at = whole.end()
        elif kind == "text":
            end = text.find("}", at)
            result += _words(text[at : end if end >= 0 else len(text)])
            at = end + 1 if end >= 0 else len(text)
        elif kind == "word":
            result += _letters(piece, result)
        elif kind == "command":
            result.append(_command(piece[1:]))
        elif kind == "unequal":
            result.append(("command", "ne"))
        elif kind != "space":
            result.append(("sign" if kind == "brace" else str(kind), piece))
    return result


def _words(text: str) -> list[Token]:
    """Return the tokens of a `\\text{...}`."""
    words = " ".join(text.split())
    if words.strip(" ,") in ("and", "or"):
        return [("sign", words.strip(" ,"))]
    return [("text", words)] if words else []


def _letters(word: str, before: list[Token]) -> list[Token]:
    """Return the tokens of a run of plain letters.

    It is a known name, a unit after a number, or one symbol per letter.
    """
    if word in ("and", "or"):
        return [("sign", word)]
    if word == "U" and before and before[-1][1] in (")", "]", "\\}"):
        return [("sign", "cup")]
    known = ALIASES.get(word, word)
    if (
        known in FUNCTIONS
        or known in CONSTANTS
        or known == "sqrt"
        or (len(known) > 2 and known in GREEK)
    ):
        return [_command(known)]
    if (
        word.lower() in UNITS
        and before
        and (before[-1][0] in ("number", "unit", "text") or before[-1][1] in (")", "}", "/", "pi"))
    ):
        return [("unit", word)]
    return [("letter", letter) for letter in word]


def _command(name: str) -> Token:
    name = ALIASES.get(name, name)
    if name in FUNCTIONS:
        return ("function", name)
    if name in ("cdot", "times"):
        return ("sign", "*")
    return ("command", CONSTANTS.get(name, name))


class Cursor:
    """A position in a list of tokens."""

    def __init__(self, listed: list[Token]) -> None:
        self.tokens = listed
        self.at = 0

    def peek(self, offset: int = 0) -> str:
        """Return the text of a token ahead; "" at the end and for `\\text`, units and matrices."""
        if self.at + offset >= len(self.tokens):
            return ""
        kind, text = self.tokens[self.at + offset]
        return "" if kind in ("text", "unit", "matrix") else text

    def kind(self, offset: int = 0) -> str:
        return self.tokens[self.at + offset][0] if self.at + offset < len(self.tokens) else ""

    def take(self, *expected: str) -> bool:
        if self.peek() in expected and self.kind() in ("sign", "command"):
            self.at += 1
            return True
        return False

    def expect(self, expected: str) -> None:
        if not self.take(expected):
            raise Unreadable(f"{expected} is missing")
