"""Whether an answer to a mathematics question is right.

In: reference answers and an answer, in LaTeX or plain text. Out: yes, no, or no verdict
(`verifier`). The other files read an answer into a tree and compare trees.
"""

import warnings
from typing import Any


def __getattr__(name: str) -> Any:
    """Return a name that the module `rewards.mathematics` of the version before had."""
    if name not in ("Case", "Verifier", "VerifierDied"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from rewards.mathematics import verifier

    warnings.warn(
        f"{__name__}.{name} is {verifier.__name__}.{name} now; the old name ends with the next "
        "version",
        FutureWarning,
        stacklevel=2,
    )
    return getattr(verifier, name)
