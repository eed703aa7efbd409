"""Read numbers, units, text groups and subscripts of a mathematical answer."""

from __future__ import annotations

import re
from fractions import Fraction

from rewards.mathematics.tokens import Cursor
from rewards.mathematics.tree import (
    LARGEST_EXPONENT,
    Node,
    Unreadable,
)

LONGEST_UNIT = 40  # characters


class NumberReader(Cursor):
    """Read numbers, units and raw text from tokens."""

    def raw(self) -> str:
        """Return the text of a group, or of a token that is a name."""
        if not self.take("{"):
            self.at += 1
            return self.tokens[self.at - 1][1] if self.at <= len(self.tokens) else ""
        begin = self.at
        while not self.take("}"):
            if self.at >= len(self.tokens) or self.peek() == "{":
                raise Unreadable("} is missing")
            self.at += 1
        return "".join(text for _, text in self.tokens[begin : self.at - 1])

    def subscript(self) -> str:
        return f"_{self.raw()}" if self.take("_") else ""

    def number(self, text: str) -> Node:
        if self.take("_"):
            base = self.raw()
            if not base.isdigit():
                raise Unreadable(base)
            return Node("based", text=f"{text}_{base}")
        mantissa, _, exponent = text.lower().partition("e")
        if exponent and abs(int(exponent)) > LARGEST_EXPONENT:
            raise Unreadable(text)
        if self.peek() == "overline" and "." in mantissa:
            return self.repeating(mantissa)
        style = "scientific" if exponent else "decimal" if "." in text else "integer"
        return Node("number", text=style, value=Fraction(text))

    def repeating(self, text: str) -> Node:
        """Read a decimal with repeating digits, `0.1\\overline{6}`."""
        self.at += 1
        digits, places = self.raw(), len(text.partition(".")[2])
        if not digits.isdigit():
            raise Unreadable(digits)
        return Node(
            "number",
            text="decimal",
            value=Fraction(text) + Fraction(int(digits), (10 ** len(digits) - 1) * 10**places),
        )

    def unit(self) -> str:
        """Read the unit words after an expression, with exponents and fractions; "" if none."""
        unit = ""
        while True:
            if self.kind() in ("text", "unit"):
                unit += " " + self.tokens[self.at][1]
                self.at += 1
            elif unit and self.peek() in ("/", "*", "-") and self.kind(1) in ("text", "unit"):
                unit += self.peek()
                self.at += 1
            elif unit and self.take("^"):
                unit += "^" + self.raw()
            else:
                break
        if len(unit) > LONGEST_UNIT or re.search(r"(?<!\^)\d", unit):
            raise Unreadable(unit)
        return unit.strip()
