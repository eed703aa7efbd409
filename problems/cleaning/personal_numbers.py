"""Find numbers that identify a person or a machine: account, card, social security, telephone and
IPv4 numbers.

A number counts only if its check digits are right (ISO 13616, Luhn), or if it is assigned. So
random digits in tests are seldom taken for one. Not found: IPv4 addresses of private and reserved
networks, numbers that are reserved for fiction, and local telephone numbers without an area code or
a word such as "phone" before them.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterator

START, END = r"(?<![\w.+-])", r"(?![\w-]|\.\d)"
IBAN = re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?\b")
# In a row of groups, four of them are no card number.
ALONE, END_ALONE = r"(?<!\d{4}[ -])", r"(?![ -]\d{4}(?!\d))"
# Visa, Mastercard, Discover in groups of four; American Express
CARD = re.compile(
    START + ALONE + r"(?:(?:4\d{3}|5[1-5]\d\d|2[2-7]\d\d|6011|65\d\d)([ -]?)\d{4}\1\d{4}\1\d{4}"
    r"|3[47]\d\d([ -]?)\d{6}\2\d{5})" + END + END_ALONE
)
SUBJECTS = {  # words of a task that is about such numbers
    "a card number": r"card|luhn",
    "a telephone number": r"phone|mobile|telephone",
    "an account number (IBAN)": r"\biban|bank account|account number",
    "a social security number": r"social security|\bssn",
    "an IPv4 address": r"\bip(?:v4)?\b|\bip_|_ip\b|internet protocol",
}
SSN = re.compile(START + r"(?!000|666|9)\d{3}-(?!00)\d\d-(?!0000)\d{4}" + END)
IPV4 = re.compile(r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w.]|\.\d)")
AREA = r"(?:\(\d{3}\) ?\d{3}|\d{3}-\d{3}|\d{3}\.\d{3})"
PHONES = (
    re.compile(START + r"\+\d[\d ().-]{7,18}\d" + END),
    re.compile(START + AREA + r"[-.]\d{4}" + END),
    re.compile(START + r"(?:\(0\d{1,4}\)|0\d{1,4})[ /-]\d{2,8}(?:[ -]\d{2,5}){0,4}" + END),
)
CALLED = re.compile(
    r"\b(?:tel(?:ephone)?|phone|mobile|cell|fax|whatsapp|call)\b[^\d\n]{1,20}"
    r"(\d{3}[-. ]\d{4}|0\d{6,11}|\d{10})" + END,
    re.IGNORECASE,
)
COUNTRIES = ("US", "GB", "DE", "FR", "IT", "NL", "CH", "AT", "AU", "IN", "JP")
MIN_DIGITS = 9
LONG, MAX_LONG = re.compile(r"\d{10}"), 3  # one in ten of many long numbers passes Luhn's check
VERSION = 20  # 1.2.3.4 is a version, or an example: no part is that large


def personal_numbers(text: str) -> Iterator[str]:
    """Yield the kind of each number that is found, without the number."""
    many = len(LONG.findall(text)) > MAX_LONG
    kinds: tuple[tuple[str, re.Pattern[str], Callable[[str], bool]], ...] = (
        ("an account number (IBAN)", IBAN, _is_iban),
        ("a card number", CARD, lambda found: _is_card(found) and not (many and found.isdigit())),
        ("a social security number", SSN, lambda _: True),
        ("an IPv4 address", IPV4, _is_public),
        *(("a telephone number", pattern, _is_assigned) for pattern in PHONES),
    )
    for kind, pattern, is_valid in kinds:
        if any(is_valid(match[0]) for match in pattern.finditer(text)):
            yield kind
    if any(_is_called(match[1]) for match in CALLED.finditer(text)):
        yield "a telephone number"


def is_subject(kind: str, text: str) -> bool:
    """Return whether a task with this text is about such numbers, so that its tests need some."""
    words = SUBJECTS.get(kind)
    return words is not None and re.search(words, text, re.IGNORECASE) is not None


def _is_iban(text: str) -> bool:
    """Return whether the check digits are right: ISO 13616, modulo 97."""
    compact = text.replace(" ", "")
    return 15 <= len(compact) <= 34 and (
        int("".join(str(int(sign, 36)) for sign in compact[4:] + compact[:4])) % 97 == 1
    )


def _is_card(text: str) -> bool:
    """Return whether the last digit is right: ISO/IEC 7812, Luhn."""
    digits = [int(sign) for sign in text if sign.isdigit()][::-1]
    doubled = [sum(divmod(2 * digit, 10)) for digit in digits[1::2]]
    return len(set(digits)) > 1 and (sum(digits[::2]) + sum(doubled)) % 10 == 0


def _is_public(text: str) -> bool:
    parts = [int(part) for part in text.split(".")]
    return (
        VERSION <= max(parts) < 256
        and text == ".".join(map(str, parts))  # no leading zeros
        and ipaddress.IPv4Address(bytes(parts)).is_global
    )


def _is_called(text: str) -> bool:
    return not _is_fiction(text) and (len(text) == 8 or _is_assigned(text))


def _is_assigned(text: str) -> bool:
    """Return whether this is a valid phone number of one of these countries."""
    import phonenumbers

    digits = sum(sign.isdigit() for sign in text)
    if _is_fiction(text) or digits < MIN_DIGITS:  # fewer may be a date
        return False
    for country in COUNTRIES if text.startswith(("0", "(0")) else ("US",):
        try:
            if phonenumbers.is_valid_number(phonenumbers.parse(text, country)):
                return True
        except phonenumbers.NumberParseException:
            pass
    return False


def _is_fiction(text: str) -> bool:
    """Return whether the number is one of those reserved for fiction: 555-01xx."""
    return bool(re.search(r"555[-. ]?01\d\d$", text))
