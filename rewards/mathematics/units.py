"""The unit of measure at the end of an answer, so that 5 metres are not taken for 5 miles.

math-verify ignores units. In: texts, in LaTeX or plain. Out: the number and its unit under one name
for all spellings. Units are compared, not converted.
"""

from __future__ import annotations

import re
from typing import NamedTuple

SPELLINGS = {
    "millimetre": "mm millimeter millimetre",
    "centimetre": "cm centimeter centimetre",
    "metre": "m meter metre",
    "kilometre": "km kilometer kilometre",
    "mile": "mi mile",
    "yard": "yd yard",
    "foot": "ft foot feet",
    "inch": "in inch inche",
    "second": "s sec second",
    "minute": "min minute",
    "hour": "h hr hour",
    "day": "day",
    "week": "week",
    "month": "month",
    "year": "yr year",
    "milligram": "mg milligram",
    "gram": "g gram",
    "kilogram": "kg kilogram",
    "tonne": "t ton tonne",
    "pound": "lb pound",
    "ounce": "oz ounce",
    "millilitre": "ml milliliter millilitre",
    "litre": "l liter litre",
    "gallon": "gal gallon",
    "cent": "cent",
    "dollar": "dollar usd",
    "euro": "eur euro",
    "degree": "degree",
    "radian": "rad radian",
    "before noon": "am a.m.",
    "after noon": "pm p.m.",
}
PLURALS = ("hr", "lb", "yr")  # of the short spellings; "ms" is no metre
UNITS = {
    form: unit
    for unit, spellings in SPELLINGS.items()
    for spelling in spellings.split()
    for form in (spelling, f"{spelling}s" if len(spelling) > 2 or spelling in PLURALS else spelling)
}
_FONT = re.compile(r"\\(?:text|textbf|mbox|mathrm|mathbf)\s*\{([^{}]*)\}|\\[ ,;:!]|~")
_NAME = "|".join(sorted(map(re.escape, UNITS), key=len, reverse=True))
_POWER = r"\s*(?:\^?\s*\{?\s*(?P<power>[23])\s*\}?|(?P<sign>[²³]))"
_UNIT = re.compile(
    rf"(?P<number>.*[\d}})])\s*\$?\s*(?:(?P<word>square|sq\.?|cubic|cu\.?)\s+)?\b(?P<unit>{_NAME})(?!\w)"
    rf"(?:{_POWER})?(?:\s*(?:/|\bper\b)\s*(?P<per>{_NAME})\b)?\s*\$?\.?\s*",
    re.IGNORECASE | re.DOTALL,
)
_SPEED = re.compile(r"\b(?:mph|kph)\b", re.IGNORECASE)
_ASKED = re.compile(
    rf"\bhow many ({_NAME})\b(?!\s+per\b)|"
    rf"\bin ({_NAME})(?=\s*[?.,]|\s+(?:is|are|does|did|will|was)\b)",
    re.IGNORECASE,
)


class Quantity(NamedTuple):
    """A number as text, and its unit; "" for none that is known."""

    number: str
    unit: str


def quantity(text: str) -> Quantity:
    """Return the number and the unit at the end of an answer."""
    plain = _FONT.sub(lambda found: f" {found[1] or ''} ", text)
    plain = _SPEED.sub(
        lambda found: "miles per hour" if found[0][0] in "mM" else "km per hour", plain
    )
    found = _UNIT.fullmatch(plain.strip())
    if not found or re.fullmatch("[A-KM-Z]", found["unit"]):  # a capital is a variable
        return Quantity(text, "")
    word = (found["word"] or "")[:1].lower()
    power = (
        {"s": "2", "c": "3"}.get(word)
        or found["power"]
        or {"²": "2", "³": "3"}.get(found["sign"] or "", "")
    )
    per = f" per {UNITS[found['per'].lower()]}" if found["per"] else ""
    return Quantity(found["number"].strip(), f"{UNITS[found['unit'].lower()]}{power}{per}")


def asked(statement: str) -> str:
    """Return the unit that a question asks for; "" if it asks for none, or names several."""
    units = {UNITS["".join(names).lower()] for names in _ASKED.findall(statement)}
    return units.pop() if len(units) == 1 else ""
