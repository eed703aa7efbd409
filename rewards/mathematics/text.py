"""Normalize the text of a mathematical answer before it is parsed.

Each symbol gets one spelling, and words and labels are distinguished from expressions.
"""

from __future__ import annotations

import re
import unicodedata

LONGEST = 500  # characters of an answer, and of a formula in a question
_UNITS = (
    "mm cm dm km nm kg mg ml mL cl kl hr hrs min mins sec secs ms kmh mph kph rpm ft yd mi lb "
    "lbs oz gal sq cu rad deg"
    " degree degrees radian radians percent pct meter meters metre metres centimeter "
    "centimeters millimeter millimeters kilometer kilometers"
    " inch inches foot feet yard yards mile miles gram grams kilogram kilograms pound pounds "
    "ounce ounces ton tons liter liters litre litres"
    " second seconds minute minutes hour hours day days week weeks month months year years "
    "dollar dollars cent cents euro euros yuan"
    " unit units square cubic per people students ways times points cups items pieces"
)
UNITS = frozenset(_UNITS.split())  # words after a number that are not a product of letters
_SIGNS = {
    "−": "-", "–": "-", "—": "-", "×": "\\times ", "·": "\\cdot ", "⋅": "\\cdot ", "∙": "\\cdot ",
    "÷": "/", "∕": "/", "⁄": "/", "√": "\\sqrt ", "∞": "\\infty ", "≤": "\\le ", "≥": "\\ge ",
    "⩽": "\\le ", "⩾": "\\ge ", "≠": "\\ne ", "≈": "\\approx ", "∈": "\\in ", "∪": "\\cup ",
    "∩": "\\cap ", "∅": "\\emptyset ", "°": "\\degree ", "±": "\\pm ", "∓": "\\mp ",
    "∖": "\\setminus ", "ℝ": "\\mathbb{R}", "ℤ": "\\mathbb{Z}", "ℓ": "\\ell ", "′": "'", "“": "",
    "”": "", "’": "'", "\u00a0": " ", "\u2009": " ", "\u202f": " ", "⟨": "\\langle ",
    "⟩": "\\rangle ",
}  # fmt: skip
_RAISED, _LOWERED = "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ", "₀₁₂₃₄₅₆₇₈₉"
_NAMES = {
    "leq": "le", "leqslant": "le", "geq": "ge", "geqslant": "ge", "neq": "ne", "lt": "<", "gt": ">",
    "div": "/", "ast": "*", "colon": ":", "dfrac": "frac", "tfrac": "frac", "cfrac": "frac",
    "dbinom": "binom", "tbinom": "binom", "lbrace": "\\{", "rbrace": "\\}", "lbrack": "[",
    "rbrack": "]", "lvert": "|", "rvert": "|", "vert": "|", "mid": "|", "simeq": "approx",
    "quad": ",", "qquad": ",", "fbox": "boxed", "land": "\\text{and}", "lor": "\\text{or}",
    "vee": "\\text{or}", "wedge": "\\text{and}", "bigcup": "cup", "prime": "'", "cosec": "csc",
}  # fmt: skip
_FONTS = (
    r"\\(text(?:bf|it|rm|sf|normal|up)?|mbox|hbox|math(?:rm|sf|normal|bf|it|cal)|boldsymbol|bm"
    r"|operatorname\*?|pmb)\s*\{([^{}]*)\}"
)
_DROPPED = (
    r"\\(?:left|right|middle|[bB]igg?[lrm]?|displaystyle|textstyle|scriptstyle|limits|nolimits"
    r"|bf|rm|it|sf|phantom\{\})(?![a-zA-Z])\s*\.?"
)


def clean(text: str) -> str:
    """Return the answer in one spelling.

    The result is ASCII without sizes, spacing commands and dollar signs; words are `\\text{...}`.
    """
    text = "".join(_ascii(text)).replace("\\$", "").replace("$", "").replace("\\%", "%")
    if "\\begin" not in text:
        text = re.sub(r"\\\\(?=[a-zA-Z(){}])", r"\\", text)
    text = re.sub(r"\\[()\[\]](?![^\\]*\\\\)" if "\\begin" not in text else r"\\[()]", " ", text)
    text = re.sub(r"(?<=\d)(?:\{,\}(?:\\!)?|,\\!|\\[,!; ]|~)\s*(?=\d{3}(?!\d))", "", text)
    text = re.sub(_DROPPED, "", text)
    text = re.sub(r"(?<!\\)\\[,;:!> ]|~|\\[hv]space\*?\{[^{}]*\}", " ", text)
    text = re.sub(_FONTS, _font, text)
    text = re.sub(r"\\([a-zA-Z]+)", lambda name: _named(name[1]), text)
    text = re.sub(r"\^\s*\{?\s*\\circ\s*\}?(?![a-zA-Z])", "\\\\degree ", text)
    text = re.sub(r"\\(frac|binom)\s*(\d)\s*(\d+)", r"\\\1{\2}{\3}", text)
    return text.strip().strip(",;").removesuffix(".").strip()


def _ascii(text: str) -> list[str]:
    """Return each character in ASCII where it has such a spelling."""
    parts: list[str] = []
    for character in text:
        name = unicodedata.name(character, "") if character > "\x7f" else ""
        if character in _SIGNS:
            parts.append(_SIGNS[character])
        elif character in _RAISED or character in _LOWERED:
            mark, spelled = (
                ("^", unicodedata.normalize("NFKC", character))
                if character in _RAISED
                else ("_", unicodedata.normalize("NFKC", character))
            )
            spelled = spelled.replace("−", "-")
            if parts and parts[-1].startswith(mark + "{"):
                parts[-1] = parts[-1][:-1] + spelled + "}"
            else:
                parts.append(f"{mark}{{{spelled}}}")
        elif name.startswith("GREEK ") and " LETTER " in name:
            letter = name.split()[-1].lower()
            parts.append("\\" + (letter.capitalize() if "CAPITAL" in name else letter) + " ")
        elif name.startswith("VULGAR FRACTION"):
            parts.append(
                "\\frac{{{}}}{{{}}}".format(*unicodedata.normalize("NFKC", character).split("⁄"))
            )
        else:
            plain = unicodedata.normalize("NFKC", character)
            parts.append(plain if len(plain) == 1 and plain <= "\x7f" else character)
    return parts


def _font(match: re.Match[str]) -> str:
    """Return the contents of a font command.

    A letter or a formula stays as it is, a bold small letter becomes a vector, words become
    `\\text`.
    """
    font, inside = match[1], match[2]
    bare = inside.strip()
    if font in ("mathbf", "boldsymbol", "bm", "pmb") and len(bare) == 1 and bare.islower():
        return f"\\vec{{{bare}}}"
    if font.startswith("operatorname"):
        return f"\\{bare} " if bare.isalpha() else f"\\operatorname{{{inside}}}"
    if not any(letter.isalpha() for letter in bare) or (
        bare in ("e", "i", "d") and font.startswith("math")
    ):
        return inside
    if font in ("mathit", "mathcal", "mathbf", "mathsf") and len(bare) == 1:
        return bare
    return f"\\text{{{inside}}}"


def _named(name: str) -> str:
    other = _NAMES.get(name, name)
    return (f"\\{other}" if other.isalpha() else f" {other} ") if name in _NAMES else f"\\{name}"


def canonical(text: str) -> str:
    """Return the cleaned text without meaningless spaces, equal for two copies of one answer."""
    text = re.sub(r"\\text\{([^{}]*)\}", r" \1 ", clean(text))
    text = re.sub(r"\\boxed\s*\{([^{}]*)\}", r"\1", text)
    text = re.sub(r"\{([A-Za-z0-9])\}", r"\1", text)
    text = re.sub(r"\s+", " ", text).strip().removesuffix(".")
    return re.sub(r"(?<![A-Za-z0-9]) | (?![A-Za-z0-9])", "", text)


_LABEL = re.compile(r"\(?([A-Z])\)?[.):]?")
_CODE = re.compile(
    r"(?=.*[A-Z])[A-Z0-9]{2,}|[a-z]+\d[a-z0-9]*|(?=.*[A-Za-z])[0-9A-Za-z]+_\{?\d+\}?"
)
_NOTATION = re.compile(
    r"\b(?:arc)?(?:sin|cos|tan|cot|sec|csc|log|ln|exp|sqrt|pi|infinity|inf|oo|and|or)\b"
)
_WORDS = re.compile(r"(?=.*[A-Za-z]{2})[A-Za-z][A-Za-z .,'’-]*")


def word(text: str) -> str | None:
    """Return a label, a numeral with letters, a name or a phrase as text to compare.

    Returns None for an expression. A word is compared as text because its letters do not commute.
    """
    cleaned = clean(text)
    bare = re.sub(r"\\text\{([^{}]*)\}", r"\1", cleaned).strip()
    if label := _LABEL.fullmatch(bare):
        return label[1].lower()
    wrapped = cleaned.startswith("\\text{") and cleaned.count("}") == 1 and cleaned.endswith("}")
    if not wrapped and _NOTATION.search(bare):
        return None
    if _CODE.fullmatch(bare):
        return bare.replace("{", "").replace("}", "").lower()
    if wrapped or _WORDS.fullmatch(bare):
        return (
            "".join(letter for letter in bare.casefold() if letter.isalnum() or letter in ":/+-")
            or None
        )
    return None


def same_text(reference: str, answer: str) -> bool | None:
    """Compare two answers by their text alone; None where that depends on their meaning."""
    if reference.strip() == answer.strip():
        return True
    if len(answer) > LONGEST:
        return False
    if canonical(reference) == canonical(answer) != "":
        return True
    one, other = word(reference), word(answer)
    if one and (other or len(one) > 1):
        return one == other
    return None
