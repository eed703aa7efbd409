"""Secrets and personal data in a problem's texts: a few exact patterns, so that nearly every find is one.

Not covered yet: names, phone numbers, passwords in prose, keys of vendors that are not listed.
"""

from __future__ import annotations

import re

from problems.encoding import dumps
from problems.schema import Problem

PATTERNS = {
    "a private key": re.compile(r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----"),
    "an AWS access key": re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"),
    "a GitHub token": re.compile(r"\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{60,})"),
    "a Slack token": re.compile(r"\bxox[abprs]-[0-9A-Za-z-]{20,}"),
    "a Google key": re.compile(r"\bAIza[0-9A-Za-z_-]{35}\b"),
    "a Hugging Face token": re.compile(r"\bhf_[A-Za-z0-9]{34,}\b"),
    "an API key": re.compile(r"\bsk-(?:proj-|ant-)?[A-Za-z0-9_-]{32,}"),
    "a web token": re.compile(r"\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}"),
    "a password in an address": re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s/:@\"']+:[^\s/:@\"']+@[a-z0-9.-]+", re.IGNORECASE),
    # names reserved for examples (RFC 2606) are nobody's
    "an e-mail address": re.compile(
        r"\b[A-Za-z0-9][A-Za-z0-9._%+-]*@(?!(?:[A-Za-z0-9-]+\.)*(?:example\.(?:com|org|net)|example|test|invalid|localhost)\b)"
        r"(?:[A-Za-z0-9-]+\.)+[A-Za-z]{2,}\b"
    ),
}


def secret_in(problem: Problem) -> tuple[str, str] | None:
    """What was found and in which column, or None. The secret itself is not returned: a report must not spread it."""
    texts = {
        "statement": problem.statement,
        "starter_code": problem.starter_code,
        "solutions": "\n".join(problem.solutions),
        "tests": dumps(list(problem.tests)),
        "extra": dumps(problem.extra),
    }
    for what, pattern in PATTERNS.items():
        for column, text in texts.items():
            if pattern.search(text):
                return what, column
    return None
