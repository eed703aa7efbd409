"""What docstrings and comments name exists: classes, `module.Class` and `function()`."""

from __future__ import annotations

import builtins
import re
from collections import defaultdict
from pathlib import Path

from tests.test_architecture import MODULES, ROOT

FILES = [*MODULES, *sorted((ROOT / "tests").rglob("*.py")), *sorted((ROOT / "deploy").glob("*.py"))]
PROSE = re.compile(r'^ *r?"""(?!\\).*?"""|(?:^| ) *# .*?$', re.DOTALL | re.MULTILINE)
URL = re.compile(r"https?://\S+")
CLASS = re.compile(r"(?<![\w./-])[A-Z][a-z0-9]+(?:[A-Z][a-z0-9]+)+\b")  # of two words or more
RAISED = re.compile(r"Raises ([A-Z][a-zA-Z]+)")
IN_MODULE = re.compile(r"(?<![\w/.-])(?:[a-z_]\w*\.)*([a-z_]\w*)\.([A-Z][a-z]\w*)\b")
FUNCTION = re.compile(r"`(?:\w+\.)*(\w+)\(\)`")
ELSEWHERE = {  # proper names, and what other projects define but our code does not name
    *("ActorDiedErrorContext", "BettingTest", "CommonMark", "DelegateSubgroup", "DynamicLayer"),
    *("EntController", "GitLab", "JavaScript", "JobDetails", "LeetCode", "LordPlusPlus", "McCabe"),
    *("MinHash", "ResourcePoolManager", "ScaleBox", "SerializableErrorInfo"),
}


def prose_and_names(path: Path) -> tuple[str, set[str]]:
    """Return a file's docstrings and comments, and the words of its code."""
    source = path.read_text(encoding="utf-8")
    prose = URL.sub("", "\n".join(PROSE.findall(source)))
    return prose, set(re.findall(r"\w+", PROSE.sub("", source)))


def test_names_in_docstrings_and_comments_exist() -> None:
    in_module, prose = defaultdict[str, set[str]](set), dict[Path, str]()
    for path in FILES:
        prose[path], names = prose_and_names(path)
        in_module[path.parent.name if path.stem == "__init__" else path.stem] |= names
    known = ELSEWHERE.union(dir(builtins), *in_module.values())
    unknown = set[str]()
    for path, text in prose.items():
        named = {*CLASS.findall(text), *RAISED.findall(text), *FUNCTION.findall(text)} - known
        named |= {
            f"{module}.{name}"
            for module, name in IN_MODULE.findall(text)
            if name not in in_module.get(module, known)
        }
        unknown |= {f"{path.relative_to(ROOT)}: {name}" for name in named}
    assert unknown == set()
