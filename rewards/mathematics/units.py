"""The unit of measure at the end of an answer, so that 5 metres are not taken for 5 miles.

math-verify ignores units. In: texts, in LaTeX or plain. Out: the number and its unit under one name
for all spellings. Units are compared, not converted.
"""

from __future__ import annotations

import re

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
    "hour": "h hr hrs hour",
    "day": "day",
    "week": "week",
    "month": "month",
    "year": "yr yrs year",
    "milligram": "mg milligram",
    "gram": "g gram",
    "kilogram": "kg kilogram",
    "tonne": "t ton tonne",
    "pound": "lb lbs pound",
    "ounce": "oz ounce",
    "millilitre": "ml milliliter millilitre",
    "litre": "l liter litre",
    "gallon": "gal gallon",
    "cent": "cent",
    "dollar": "dollar usd",
    "euro": "eur euro",
    "degree": "degree",
    "celsius": "celsius centigrade",
    "fahrenheit": "fahrenheit",
    "radian": "rad radian",
    "before noon": "am a.m.",
    "after noon": "pm p.m.",
    "acre": "acre",
    "hectare": "ha hectare",
    "cup": "cup",
    "pint": "pt pint",
    "quart": "qt quart",
    "bit": "bit",
    "byte": "byte",
    "volt": "volt",
    "watt": "watt",
    "kilowatt": "kw kilowatt",
    "joule": "joule",
    "newton": "newton",
    "ohm": "ohm",
    "hertz": "hz hertz",
    "nickel": "nickel",
    "dime": "dime",
    "hour mile per": "mph",
    "hour kilometre per": "kph",
}
UNITS = {
    form: unit
    for unit, spellings in SPELLINGS.items()
    for spelling in spellings.split()
    for form in (spelling, f"{spelling}s" if len(spelling) > 2 else spelling)
}
BETWEEN = {
    "square": "2",
    "sq": "2",
    "²": "2",
    "2": "2",
    "cubic": "3",
    "cu": "3",
    "³": "3",
    "3": "3",
}
WORDS = UNITS | BETWEEN | {"per": "per", "/": "per"}


def _any(words: dict[str, str]) -> str:
    return "|".join(sorted(map(re.escape, words), key=len, reverse=True))


_DEGREE = r"(?:\^\s*\{?\\circ\}?|°)"
_LETTER = r"\s*(?:\\(?:text|mathrm|textrm)\s*\{{\s*)?{0}\b\s*\}}?"
_SIGNS = {
    _DEGREE + _LETTER.format("C"): " celsius ",
    _DEGREE + _LETTER.format("F"): " fahrenheit ",
    r"(?i:\bdegrees?\s+(celsius|centigrade|fahrenheit)\b)": r" \1 ",
    _DEGREE: " degree ",
    r"\\Omega\b|Ω": " ohm ",
    r"^\s*\\\$\s*([\d.,]+)$": r"\1 dollar",
}
_FONT = re.compile(r"\\(?:text|textbf|mbox|mathrm|mathbf)\s*\{([^{}]*)\}|\\[ ,;:!]|~")
_UNIT = re.compile(
    r"(.*(?:[\d})]|\\pi))\s*\$?\s*\b(?=[a-z])(?!(?-i:[A-KM-Z]\b))"  # a capital is a variable
    rf"((?:(?:/|(?:{_any(WORDS)})(?![^\W\d_]))[\s^{{}}.]*)+)\$?\.?",
    re.IGNORECASE | re.DOTALL,
)
_WORD = re.compile(_any(WORDS))
_ASKED = re.compile(
    rf"\bhow many ({_any(UNITS)})\b(?!\s+per\b)|"
    rf"\bin ({_any(UNITS)})(?=\s*[?.,]|\s+(?:is|are|does|did|will|was)\b)",
    re.IGNORECASE,
)


def quantity(text: str) -> tuple[str, str]:
    """Return the number and the unit at the end of an answer; "" for a unit that is unknown."""
    plain = text
    for sign, word in _SIGNS.items():
        plain = re.sub(sign, word, plain)
    plain = _FONT.sub(lambda found: f" {found[1] or ''} ", plain)
    if not (found := _UNIT.fullmatch(plain.strip())):
        return text, ""
    return found[1].strip(), " ".join(
        sorted(WORDS[word] for word in _WORD.findall(found[2].lower()))
    )


_VERB = re.compile(r".*(?:\b(?:is|are|equals?|equal to)\b|(?<=[a-z]):)\s*(\S.*)", re.DOTALL)
_NAMES = re.compile(r"(?<!\\)\b(?!text|frac|sqrt|pi\b|le\b)[A-Za-z]{2,}")
_VALUE = re.compile(r"\$[^$]+\$|\\\(.+?\\\)|(?<![\w.])-?\d(?:[\d.,/]*\d)?(?![\w/])")
# Words with which a number in a sentence is not its result.
_HEDGE = re.compile(
    r"n't\b|\b(?:not?|nor|or|either|never|than|least|most|about|around|approximately|roughly|nearly"
    r"|almost|between|over|under|above|below|up to|except|if|unless|may|might|per)\b",
    re.IGNORECASE,
)


def result_of(answer: str) -> str:
    """Return the value that a sentence names as its result: "The area is 12 cm." names 12 cm.

    It is what follows the verb, or the only number or formula. Other texts stay as they are.
    """
    text = _FONT.sub(lambda found: f" {found[1] or ''} ", answer).strip().rstrip(".")
    verb, values = _VERB.fullmatch(text), _VALUE.findall(text)
    if verb and len(_words(verb[1])) < (1 if values else 2):
        return verb[1]
    named = len(values) == 1 and len(_words(text)) > 1 and not _HEDGE.search(text)
    return values[0] if named else answer


def _words(text: str) -> list[str]:
    """Return the words of a text that name no unit."""
    return [word for word in _NAMES.findall(_FONT.sub(" ", text)) if word.lower() not in WORDS]


def asked(statement: str) -> str:
    """Return the unit that a question asks for; "" if it asks for none, or names several."""
    units = {UNITS["".join(names).lower()] for names in _ASKED.findall(statement)}
    return units.pop() if len(units) == 1 else ""
