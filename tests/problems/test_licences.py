"""A licence is recognized in other words, and never for a wider one."""

from __future__ import annotations

import pytest

from problems.cleaning.licences import is_allowed
from problems.cleaning.settings import Curation

ALLOWED = Curation().licences


@pytest.mark.parametrize(
    "licence",
    [
        *ALLOWED,
        "MIT License",
        "The MIT License (MIT)",
        "Apache 2.0",
        "Apache License, Version 2.0",
        'BSD 3-Clause "New" or "Revised" License',
        "CC BY 4.0",
        "Creative Commons Attribution 4.0 International",
        "https://opensource.org/licenses/MIT",
        "https://www.apache.org/licenses/LICENSE-2.0.txt",
        "https://creativecommons.org/licenses/by/4.0/",
        "SPDX-License-Identifier: MIT",
        "License :: OSI Approved :: MIT License",
        "Apache-2.0 WITH LLVM-exception",
        "MIT/Apache-2.0",
        "New BSD License",
        "MIT OR GPL-3.0-only",
        "(MIT OR Apache-2.0)",
        "GPL-3.0-only OR (MIT AND ISC)",
        "(MIT OR GPL-3.0-only) AND (GPL-2.0-only OR ISC)",
    ],
)
def test_an_allowed_licence_may_be_spelled_otherwise(licence: str) -> None:
    assert is_allowed(licence, ALLOWED)


@pytest.mark.parametrize(
    "licence",
    [
        "",
        "unknown",
        "BSD",
        "CC BY-NC 4.0",
        "https://creativecommons.org/licenses/by-nc/4.0/",
        "MIT/GPL-3.0",
        "MIT WITH Commons-Clause",
        "CC-BY-SA-4.0",
        "not MIT",
        "MIT AND GPL-3.0-only",
        "(MIT OR GPL-3.0-only) AND GPL-2.0-only",
        "(" * 9_999 + "MIT" + ")" * 9_999,
    ],
)
def test_another_licence_is_refused(licence: str) -> None:
    assert not is_allowed(licence, ALLOWED)
