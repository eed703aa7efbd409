"""Style `repository`: a shell script that changes the files of a task, and the task's own tests.

The script acts in the image's files. What it leaves in plain files is copied into a restored image,
except files that a test runner, Python or Git loads by itself; then the tests are added. They
run what the script wrote in their own processes, so the trust is `shared`.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sandbox import child
from sandbox.reading import Key, is_text, is_texts
from sandbox.styles.style import Style
from sandbox.styles.unittest_ import UnittestAttempt
from sandbox.verdict import Verdict
from sandbox.worker.attempt_processes import AttemptProcesses
from sandbox.worker.messages import Result

FUTURE = "from __future__ import annotations\n"  # a text that follows another has it no more
HARNESS = (Path(child.__path__[0]) / "repository.py").read_text("utf-8")


@dataclass(frozen=True)
class RepositoryTest:
    """The files of an image and of its tests, by path, in base64.

    files: absolute paths. tests: paths in /tests. test: the script of `tests` that writes the
    reward to /logs/verifier/reward.txt, or with `layout` terminal-bench ends with exit status 0.
    runs: commands that complete the image.
    """

    files: Mapping[str, str]
    tests: Mapping[str, str]
    test: str
    layout: str = "harbor"
    workdir: str = "/app"
    environment: Mapping[str, str] = field(default_factory=dict)
    runs: tuple[str, ...] = ()


class RepositoryAttempt(UnittestAttempt):
    """Runs the harness with the program as a task's solution, once for each test."""

    def __init__(self, processes: AttemptProcesses) -> None:
        super().__init__(processes)
        program = base64.b64encode(self.job["source"].encode("utf-8", "surrogatepass")).decode()
        facts = {"solve": "solve.sh", "solution": {"solve.sh": program}}
        self.tests = [{"source": _method(test | facts)} for test in self.tests]
        self.processes.job = self.job | {"source": HARNESS, "entry": "judged"}

    def run(self) -> list[Result]:
        if self.processes.slot.level == "bare":  # the harness needs a file system of its own
            self.shared = self.unusable = True
            why = "not measured: style repository needs isolation root or userns"
            return [[Verdict.INFRA, why, 0.0] for _ in self.tests]
        return super().run()


def _method(test: dict[str, Any]) -> str:
    pytest = any(b"pytest" in base64.b64decode(text) for text in test["tests"].values())
    facts = json.dumps(test | {"kind": test["layout"], "pytest": pytest})
    return (
        "import json\nimport unittest\n\n\nclass Repository(unittest.TestCase):\n"
        f"    def test(self):\n        judged(self, json.loads({facts!r}))\n"
    )


def _files(value: Any) -> bool:
    return isinstance(value, Mapping) and all(
        is_text(path) and is_text(data) and _decodes(data) for path, data in value.items()
    )


def _decodes(data: str) -> bool:
    try:
        return bool(base64.b64decode(data, validate=True)) or not data
    except ValueError:
        return False


def _texts(value: Any) -> bool:
    return isinstance(value, Mapping) and all(map(is_text, value.values()))


STYLE = Style(
    "repository",
    RepositoryTest,
    {
        "files": Key("an object of paths and base64", _files, required=True),
        "tests": Key("an object of paths and base64", _files, required=True),
        "test": Key("the name of a script in `tests`", is_text, required=True),
        "layout": Key("harbor or terminal-bench", ("harbor", "terminal-bench").__contains__),
        "workdir": Key("a path", is_text),
        "environment": Key("an object of texts", _texts),
        "runs": Key("a list of commands", is_texts),
    },
    RepositoryAttempt,
    show=lambda test: "\n\n".join(
        base64.b64decode(data).decode("utf-8", "replace") for data in test.tests.values()
    ),
    text=lambda test, name, compare, parse: str(test["test"]),
    options=("language",),
    has_entry_point=False,
    shared=True,
    preload=("unittest", "unittest.mock"),
    many_rows=True,
)
