"""Normalize text to what a reader sees.

Lookalike letters and invisible characters would hide a copy from every comparison. In: any text.
Out: the same text with Latin letters for their lookalikes, and without characters of no width.
ASCII text is unchanged.
"""

from __future__ import annotations

import unicodedata

# Small and capital letters of Greek and Cyrillic that look like Latin ones (Unicode's
# confusables.txt, UTS 39).
ALIKE = str.maketrans(
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0458\u0455\u0501\u04bb\u051b\u051d\u03bf\u03bd\u0131"
    "\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0425\u0406\u0408\u0405\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d"
    "\u039f\u03a1\u03a4\u03a5\u03a7",
    "aeopcyxijsdhqwoviABEKMHOPCTXIJSABEZHIKMNOPTYX",
)


def normalize(text: str) -> str:
    """Normalize a text. Signs such as the square keep their form, because `x²` is not `x2`."""
    if text.isascii():
        return text
    seen = (letter for letter in text if unicodedata.category(letter) != "Cf")
    return "".join(
        unicodedata.normalize("NFKC", letter) if letter.isalpha() else letter for letter in seen
    ).translate(ALIKE)
