"""Read a final answer (LaTeX or plain text) into a syntax tree.

The tree holds what is written; nothing is evaluated. Unknown notation raises Unreadable.
Operators that require a computation (sums, integrals, limits, derivatives, determinants, gcd, ...)
are unsupported on purpose.
"""

from __future__ import annotations

from fractions import Fraction

from rewards.mathematics.numbers import NumberReader
from rewards.mathematics.text import clean
from rewards.mathematics.tokens import DECORATIONS, LETTERS, Token, tokens
from rewards.mathematics.tree import (
    EXPRESSIONS,
    Node,
    Unreadable,
    infinite,
    mixed,
    negative,
    quotient,
)

RELATIONS = {
    "=": "=",
    "<": "<",
    ">": ">",
    "le": "<=",
    "ge": ">=",
    "ne": "!=",
    "approx": "=",
    "in": "in",
}
SEPARATORS = (",", ";", "and", "or")
CLOSING = {"(": ")", "[": "]", "\\{": "\\}", "{": "}", "langle": "rangle"}


def read(text: str) -> Node:
    """Return the tree of an answer. Raises Unreadable."""
    try:
        return _Reader(tokens(clean(text))).whole()
    except (RecursionError, ZeroDivisionError) as error:
        raise Unreadable(str(error)) from error


class _Reader(NumberReader):
    """Recursive descent over tokens."""

    def __init__(self, listed: list[Token]) -> None:
        super().__init__(listed)
        self.bars = 0  # open absolute-value bars: the next bar closes one

    def whole(self) -> Node:
        node = self.listed(())
        if self.at < len(self.tokens):
            raise Unreadable(self.tokens[self.at][1])
        return node

    def listed(self, closing: tuple[str, ...]) -> Node:
        """Read items up to a closing sign: one item as it is, several as a list.

        Items separated by both `;` and `,` become a list of lists. `or` between inequalities makes
        alternatives.
        """
        groups, signs = [self.item()], set()
        while self.kind() == "sign" and self.peek() in SEPARATORS:
            between = set()
            while self.kind() == "sign" and self.peek() in SEPARATORS:
                between.add(self.peek())
                self.at += 1
            if self.at < len(self.tokens) and self.peek() not in closing:
                groups += [self.item()] if ";" in between else []
                if ";" not in between:
                    groups[-1] += self.item()
            signs |= between
        items = [item for group in groups for item in group]
        if len(items) == 1:
            return items[0]
        if "or" in signs and all(
            item.kind == "relation" and "=" not in item.text.split() for item in items
        ):
            return Node("or", tuple(items))
        if "," in signs and len(groups) > 1:
            return Node("list", tuple(Node("list", tuple(group)) for group in groups))
        return Node("list", tuple(items))

    def item(self) -> list[Node]:
        """Read one item. An item with a plus-minus sign becomes two."""
        begin = self.at
        node = self.relation()
        if not any(
            text in ("pm", "mp") for kind, text in self.tokens[begin : self.at] if kind == "command"
        ):
            return [node]
        reader = _Reader(
            [
                ("sign", {"pm": "-", "mp": "+"}.get(text, text))
                if kind == "command" and text in ("pm", "mp")
                else (kind, text)
                for kind, text in self.tokens[begin : self.at]
            ]
        )
        return [node, reader.whole()]

    def relation(self) -> Node:
        """Read expressions joined by relation signs. A leading sign is dropped ("= 5", "≈ 5")."""
        self.take("=", "approx")
        sides, signs = [self.named() or self.quantity()], []
        while self.kind() in ("sign", "command") and self.peek() in RELATIONS:
            signs.append(RELATIONS[self.peek()])
            self.at += 1
            if signs[-1] in "<>" and self.take("="):
                signs[-1] += "="
            sides.append(self.quantity())
        return Node("relation", tuple(sides), " ".join(signs)) if signs else sides[0]

    def named(self) -> Node | None:
        """Read a name with optional brackets before an equals sign as a symbol.

        Examples: `P(X > 2) =`, `\\text{Area} =`. Returns None where there is no such name.
        """
        end = self.at
        while end < len(self.tokens) and self.tokens[end][0] in ("letter", "text"):
            end += 1
        if end > self.at and end + 1 < len(self.tokens) and self.tokens[end] == ("sign", "("):
            end = (
                next(
                    (at for at in range(end, len(self.tokens)) if self.tokens[at] == ("sign", ")")),
                    len(self.tokens),
                )
                + 1
            )
        elif self.kind() != "text":
            return None
        if end >= len(self.tokens) or end == self.at or self.tokens[end] != ("sign", "="):
            return None
        begin, self.at = self.at, end
        return Node("symbol", text="".join(text for _, text in self.tokens[begin:end]))

    def quantity(self) -> Node:
        """Read an expression or a container, with the unit or words after it."""
        if self.kind() == "text" and self.at + 1 >= len(self.tokens):
            self.at += 1
            return Node("word", text=self.tokens[self.at - 1][1])
        node, unit = self.sets(), self.unit()
        return Node("quantity", (node,), unit) if unit else node

    def sets(self) -> Node:
        node = self.ratio()
        while self.peek() in ("cup", "cap", "setminus", "backslash"):
            kind = {"cup": "union", "cap": "intersection"}.get(self.peek(), "difference")
            self.at += 1
            node = Node(kind, (node, self.ratio()))
        return node

    def ratio(self) -> Node:
        begin, parts = self.at, [self.sum()]
        while self.take(":"):
            parts.append(self.sum())
        written = "".join(text for _, text in self.tokens[begin : self.at])
        return Node("ratio", tuple(parts), written) if len(parts) > 1 else parts[0]

    def sum(self) -> Node:
        minus = self.peek() in ("-", "mp")
        self.take("+", "-", "pm", "mp")
        terms = [negative(self.term()) if minus else self.term()]
        while self.peek() in ("+", "-", "pm", "mp"):
            minus = self.peek() in ("-", "mp")
            self.at += 1
            terms.append(negative(self.term()) if minus else self.term())
        return Node("sum", tuple(terms)) if len(terms) > 1 else terms[0]

    def term(self) -> Node:
        """Read factors and divisors: a product over a product."""
        over, under = [self.factor()], []
        if (
            over[0].text == "integer"
            and self.kind(-1) == "number"
            and (fraction := self.mixed()) is not None
        ):
            over = [mixed(over[0], fraction)]
        while True:
            if self.take("*"):
                over.append(self.factor(signed=True))
            elif self.take("/"):
                under.append(self.factor(signed=True))
            elif self.begins_factor():
                if over[-1].kind not in EXPRESSIONS:
                    raise Unreadable(over[-1].kind)
                if self.kind() == self.kind(-1) == "number":
                    raise Unreadable("two numbers side by side")
                over.append(self.factor())
            else:
                return quotient(over, under)

    def mixed(self) -> Node | None:
        """Read the fraction of a mixed number, as in `2\\frac{1}{2}` or `2 1/2`; None if absent."""
        begin, fraction = self.at, None
        if self.kind() == "number" and self.peek(1) == "/" and self.kind(2) == "number":
            over = self.factor()
            self.at += 1
            fraction = quotient([over], [self.factor()])
        elif self.peek() == "frac" and self.kind() == "command":
            fraction = self.atom()
        if (
            fraction is not None
            and fraction.value is not None
            and fraction.text in ("fraction", "unreduced")
            and 0 < fraction.value < 1
        ):
            return fraction
        self.at = begin
        return None

    def begins_factor(self) -> bool:
        kind, text = self.kind(), self.peek()
        if kind in ("number", "letter", "function", "matrix") or (text == "|" and not self.bars):
            return True
        return (
            text in ("(", "[", "{", "langle", "lfloor", "lceil") and kind in ("sign", "command")
        ) or (kind == "command" and _starts(text))

    def factor(self, signed: bool = False) -> Node:
        if signed and self.take("-"):
            return negative(self.factor())
        node = self.atom()
        while True:
            if self.take("^"):
                node = Node("power", (node, self.argument()))
            elif self.take("!"):
                node = Node("factorial", (node,))
            elif self.take("%"):
                node = Node("percent", (node,))
            elif self.take("degree"):
                node = Node("degree", (node,))
            elif node.kind == "symbol" and self.take("'"):
                node = Node("symbol", text=node.text + "'")
            else:
                return node

    def argument(self) -> Node:
        """Read the argument of `^`, `\\sqrt` or `\\frac`: a group, or one token with its sign."""
        if self.take("{"):
            node = self.sum()
            self.expect("}")
            return node
        return self.factorless()

    def factorless(self) -> Node:
        return negative(self.atom()) if self.take("-") else self.atom()

    def atom(self) -> Node:
        kind, text = self.kind(), self.peek()
        if kind == "matrix":
            rows = self.tokens[self.at][1].strip().removesuffix("\\\\").split("\\\\")
            self.at += 1
            return Node(
                "matrix",
                tuple(
                    Node("row", tuple(_Reader(tokens(cell)).whole() for cell in row.split("&")))
                    for row in rows
                ),
            )
        if not kind or kind in ("text", "unit"):
            raise Unreadable("something is missing")
        self.at += 1
        if kind == "number":
            return self.number(text)
        if kind == "letter":
            return Node("symbol", text=text + self.subscript())
        if kind == "function":
            return self.call(text)
        if text in CLOSING:
            return self.group(text)
        if text == "]":
            return self.group("[", first="]")
        if text == "|":
            self.bars += 1
            inner = self.sum()
            self.bars -= 1
            self.expect("|")
            return Node("abs", (inner,))
        return self.command(text)

    def command(self, name: str) -> Node:
        if name == "frac":
            return quotient([self.argument()], [self.argument()])
        if name == "sqrt":
            index = Node("number", text="integer", value=Fraction(2))
            if self.take("["):
                index = self.sum()
                self.expect("]")
            return Node("root", (self.argument(), index))
        if name == "binom":
            return Node("binomial", (self.argument(), self.argument()))
        if name == "boxed":
            return self.argument()
        if name in ("lfloor", "lceil"):
            inner = self.sum()
            self.expect("r" + name[1:])
            return Node(name[1:], (inner,))
        if name in ("emptyset", "varnothing"):
            return Node("set")
        if name in DECORATIONS:
            return Node("symbol", text=f"{name} {self.raw()}" + self.subscript())
        if name == "mathbb":
            return Node("symbol", text=f"mathbb {self.raw()}")
        if name in LETTERS or name in ("pi", "infty"):
            return Node("symbol", text=name + self.subscript())
        raise Unreadable(name)

    def call(self, name: str) -> Node:
        """Read a function and its argument, with or without brackets.

        Examples: `\\sin^2 x`, `\\log_2 (x + 1)`, `\\sin 2x \\cos x`.
        """
        power: Node | None = None
        base: tuple[Node, ...] = ()
        for _ in range(2):
            if self.take("_"):
                base = (self.argument(),)
            elif self.take("^"):
                power = self.argument()
        if self.peek() in ("(", "{", "["):
            self.at += 1
            inner = self.group(self.peek(-1))
        else:
            factors = [self.factor(signed=True)]
            while self.begins_factor() and self.kind() != "function" and self.peek() != "(":
                factors.append(self.factor())
            inner = quotient(factors, [])
        if power and power.kind == "number" and power.value == -1 and not name.startswith("arc"):
            return Node("call", (inner,), "arc" + name)
        node = Node("call", (inner, *base), {"lg": "log"}.get(name, name))
        if name == "exp":
            node = Node("power", (Node("symbol", text="e"), inner))
        return Node("power", (node, power)) if power else node

    def group(self, opening: str, first: str = "") -> Node:
        """Read up to the closing bracket: a bracketed expression, a tuple, an interval or a set."""
        closing = CLOSING[opening]
        either = {")", "]", "["} if opening in "([" else {closing}
        if opening == "\\{" and self.take("\\}"):
            return Node("set")
        if opening == "\\{" and self.kind() == "letter" and self.peek(1) == ":":
            self.tokens[self.at + 1] = ("sign", "|")
        before, self.bars = self.bars, int(opening == "\\{")
        node = self.listed(tuple(either))
        self.bars = 0 if opening == "\\{" and self.take("|") else before
        if opening == "\\{" and self.tokens[self.at - 1][1] == "|" and not self.bars:
            if node.kind != "symbol":
                raise Unreadable("a set of expressions")
            node, self.bars = self.listed(("\\}",)), before
            self.expect("\\}")
            return node
        if opening == "{" and self.take("choose"):
            node = Node("binomial", (node, self.sum()))
        end = self.peek()
        if end not in either:
            raise Unreadable(f"{closing} is missing")
        self.at += 1
        items = node.args if node.kind == "list" else (node,)
        if opening in ("\\{", "{") and (opening == "\\{" or len(items) > 1):
            return Node("set", items)
        brackets = (first or opening) + end
        if (
            len(items) == 2
            and opening in "(["
            and (brackets != "()" or any(infinite(item) for item in items))
        ):
            return Node(
                "interval",
                items,
                {"]": "("}.get(brackets[0], brackets[0]) + {"[": ")"}.get(end, end),
            )
        if len(items) > 1:
            return Node("tuple", items)
        if brackets not in ("()", "{}", "[]") or node.kind in ("relation", "or"):
            raise Unreadable(brackets)
        return node


def _starts(command: str) -> bool:
    return (
        command in LETTERS
        or command in DECORATIONS
        or command in ("frac", "sqrt", "binom", "pi", "infty", "boxed", "mathbb")
    )
