"""Find secrets and personal data in a problem's texts, with few false alarms.

Keys and tokens of vendors are found by `detect-secrets`, without its guesses from entropy and from
words like "password", which every tenth exercise contains. Our own patterns find some tokens that
it lacks, e-mail addresses, and names in paths. Telephone numbers are found by `phonenumbers`, which
knows the assigned ones. Not covered: names of persons in prose, postal addresses, passwords in
prose.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any

from problems.cleaning.normalize import normalize
from problems.cleaning.personal_numbers import is_subject, personal_numbers
from problems.schema import Problem

PATTERNS = {
    "a private key": re.compile(r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----"),
    "a GitHub token": re.compile(r"\bgithub_pat_[A-Za-z0-9_]{60,}"),
    "a Google key": re.compile(r"\bAIza[0-9A-Za-z_-]{35}\b"),
    "a Hugging Face token": re.compile(r"\bhf_[A-Za-z0-9]{34,}\b"),
    "an npm token": re.compile(
        r"\bnpm_[A-Za-z0-9]{30,}|_authToken\s{0,9}=\s{0,9}(?:npm_\w{30,}|[A-Fa-f0-9-]{36})"
    ),
    "a Databricks token": re.compile(r"\bdapi[0-9a-f]{32}\b"),
    "a DigitalOcean token": re.compile(r"\bdo[opr]_v1_[0-9a-f]{64}\b"),
    "a Weights & Biases key": re.compile(
        r"\bwandb_v1_\w{40,}|\bwandb[^\n]{0,40}[^0-9a-f\n][0-9a-f]{40}\b", re.IGNORECASE
    ),
    "a vendor's token": re.compile(
        r"\b(?:r8_|lin_api_|glpat-|gsk_|nvapi-|pplx-|hvs\.|tskey-[a-z]+-|dp\.pt\.|PMAK-|rubygems_|"
        r"sbp_|ph[cx]_|sntry[su]_|dckr_pat_|xkeysib-|shp(?:at|ss|ca|pa)_|figd_|ntn_|fly_|rk_live_|"
        r"xapp-\d-|ATATT|ATCTT|ya29\.|EAACEdEose0cBA|oy2|pul-)"
        r"(?=[A-Za-z0-9_=-]{0,80}\d)[A-Za-z0-9_=-]{20,}"
    ),
    "a login in a header": re.compile(
        r"\bAuthorization[\"']?\s{0,3}[:=,]\s{0,3}[\"']?Basic\s{1,3}[A-Za-z0-9+/]{8,}={0,2}",
        re.IGNORECASE,
    ),
    "a bearer token": re.compile(
        r"\bBearer\s{1,3}(?=\S{0,80}\d)[A-Za-z0-9._~+/-]{16,}", re.IGNORECASE
    ),
    # quoted, or as in a settings file; a value of letters only is a placeholder or a name, unless
    # small and capital letters change as often as in random ones
    "an assigned key or password": re.compile(
        r"(?:api[_-]?key|secret[_-]?key|access[_-]?key|client[_-]?secret|auth[_-]?token|"
        r"access[_-]?token|passw(?:or)?d|passphrase|pwd|(?<=_)pass)[\"']?\s{0,3}(?::|=(?!=))\s{0,3}"
        r"(?:(?P<quote>[\"'])(?=[^\"'\s]{0,80}[\d!@#$%^&*])(?=[^\"'\s]{0,80}[A-Za-z])[^\"'\s<>{}]{6,100}(?P=quote)"
        r"|(?=[^\s,;)\"']{0,80}\d|(?-i:(?:[A-Za-z]{0,2}[a-z][A-Z]){4}))(?=[^\s,;)\"']{0,80}[A-Za-z])[^\s,;()\[\]{}<>\"'.]{6,100}(?=[\s\"']|$))",
        re.IGNORECASE,
    ),
    "an assigned token": re.compile(
        r"(?i:secret|token)[\"']?\s{0,3}(?::|=(?!=))\s{0,3}(?P<quote>[\"'])(?=(?:[^\"'\s]{0,40}\d){2})"
        r"(?=(?:[^\"'\s]{0,40}[A-Z]){2})(?=(?:[^\"'\s]{0,40}[a-z]){2})[\w+/=.-]{16,100}(?P=quote)"
    ),
    "a login on a command line": re.compile(
        r"\bsshpass\s{1,3}-p\s{0,3}[\"']?(?=\S{0,40}\d)[^\s\"'$<{]{6,}"
        r"|\bcurl\b[^\n]{0,200}\s-u\s{1,3}[\"']?[^\s:\"'$<{]{1,40}:(?=\S{0,40}\d)[^\s\"'$<{]{6,}"
    ),
    "a webhook": re.compile(r"\bdiscord(?:app)?\.com/api/webhooks/\d{17,20}/[\w-]{60,}"),
    "a Mailgun key": re.compile(r"\bkey-[0-9a-f]{32}\b"),
    "an API key": re.compile(r"\bsk-(?:proj-|ant-)?[A-Za-z0-9_-]{32,}"),
    "a password in an address": re.compile(
        r"\b[a-z][a-z0-9+.-]{1,20}://[^\s/:@\"']{1,200}:[^\s/:@\"']{1,200}@[a-z0-9.-]+",
        re.IGNORECASE,
    ),
    # names reserved for examples (RFC 2606) belong to nobody
    "an e-mail address": re.compile(
        r"\b[A-Za-z0-9][A-Za-z0-9._%+-]{0,63}@(?!(?:[A-Za-z0-9-]{1,63}\.){0,9}(?:example\.(?:com|org|net)|example|test|invalid|localhost)\b)"
        r"(?:[A-Za-z0-9-]{1,63}\.){1,9}[A-Za-z]{2,}\b"
    ),
    "a name in a path": re.compile(
        r"(?:/home/|/Users/|[A-Za-z]:\\{1,4}Users\\{1,4})"
        r"(?!(?:users?|username|you|me|name|my\w*|your\w*|ubuntu|root|admin|runner|guest|public|default|shared|jovyan|vagrant|docker|app|dev|test\w*"
        r"|example|student|foo|bar|alice|bob|john)\b)[A-Za-z][\w.-]{2,31}(?=[/\\])",
        re.IGNORECASE,
    ),
}
VENDORS = (
    "AWSKey AzureStorageKey BasicAuth DiscordBotToken GitHubToken GitLabToken JwtToken "
    "Mailchimp OpenAI PrivateKey PypiToken SendGrid Slack "
    "SquareOAuth Stripe TelegramBotToken TwilioKey"
)
MADE_UP = ("tests", "solutions")  # where the numbers are that a task about such numbers needs
WINDOW, OVERLAP = 4_000, 1_000  # in characters; a secret longer than OVERLAP could be cut
# Without a match, there is no secret.
SUSPICIOUS = re.compile(
    r"[A-Za-z0-9_/+=-]{20}|BEGIN [A-Z]|xox|@|/home/|/users/|\\users\\|key|passw|_pass|"
    r"passphrase|pwd|token|secret|bearer|sshpass|curl",
    re.IGNORECASE,
)
DIGITS = re.compile(r"\d{7}|\d[ ./()-]{1,2}\d{2}|\d\.\d{1,3}\.\d")  # without, there is no number


def secret_in(problem: Problem) -> tuple[str, str] | None:
    """Return what was found and in which column, or None.

    The secret itself is not returned, because a report must not spread it.
    """
    named = f"{problem.statement} {problem.entry_point or ''}"
    texts = {
        "statement": problem.statement,
        "starter_code": problem.starter_code,
        "solutions": "\n".join(problem.solutions),
        "tests": _plain(problem.tests),
        "extra": _plain(problem.extra),
        "checker": problem.checker or "",
        "tags": "\n".join(problem.tags),
        "problem_id": problem.problem_id,
        "entry_point": problem.entry_point or "",
    }
    return next(
        (
            (what, column)
            for column, text in texts.items()
            for what in _candidates(text)
            if not (column in MADE_UP and is_subject(what, named))
        ),
        None,
    )


def _plain(value: Any) -> str:
    """Return the keys with their values, then the texts as they are: the former escape quotes."""
    return "\n".join([repr(value).replace("\\\\", "\\").replace("\\n", "\n"), *_quoting(value)])


def _quoting(value: Any) -> Iterator[str]:
    """Yield the texts in a value that its form in Python's syntax changes."""
    if isinstance(value, str):
        if repr(value)[1:-1] != value:
            yield value
    elif isinstance(value, Mapping):
        yield from _quoting([*value, *value.values()])
    elif isinstance(value, Iterable):
        for each in value:
            yield from _quoting(each)


def _candidates(text: str) -> Iterator[str]:
    """Search one window at a time: some patterns are quadratic in a line's length."""
    text = normalize(unicodedata.normalize("NFKC", text))
    for start in range(0, len(text), WINDOW - OVERLAP):
        window = text[start : start + WINDOW]
        if SUSPICIOUS.search(window):
            yield from _in_window(window)
        if DIGITS.search(window):
            yield from personal_numbers(window)


def _in_window(text: str) -> Iterator[str]:
    yield from (what for what, pattern in PATTERNS.items() if pattern.search(text))
    yield from (
        detector.secret_type
        for detector in _detectors()
        if next(iter(detector.analyze_string(text)), None)
    )


@cache
def _detectors() -> list[Any]:
    from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class

    known = {plugin.__name__: plugin for plugin in get_mapping_from_secret_type_to_class().values()}
    return [known[f"{name}Detector"]() for name in VENDORS.split()]
