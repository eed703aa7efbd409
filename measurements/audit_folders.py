"""Small Harbor tasks, and copies of them with one fault each, for measurements/audit.py."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from measurements.audit_tasks import BASES, write_base
from rewards.audit.findings import (
    CONTAINED,
    LAYOUT,
    LEAK,
    NOTHING,
    PLANTED,
    REPEATS,
    SOLUTION,
    WRONG,
)

PRESENT = "import os\n\n\ndef test_present():\n    assert os.path.exists('/app/{output}')\n"
UNCONDITIONAL = """\
#!/bin/bash
pytest /tests/test_outputs.py
echo 1 > /logs/verifier/reward.txt
"""
NEVER_CLEARED = """\
#!/bin/bash
mkdir -p /logs/verifier
cd /tests
pytest --noconftest -q /tests/test_outputs.py && echo 1 > /logs/verifier/reward.txt
"""
APART = "cd /tests\nif pytest --noconftest -q /tests/test_outputs.py"
BESIDE = "cp /tests/test_outputs.py /app/\ncd /app\nif pytest -q test_outputs.py"
NO_ASSERT = "def test_it():\n    pass\n"


def _change(path: str, old: str, new: str) -> Callable[[Path, str], None]:
    def change(folder: Path, name: str) -> None:
        text = (folder / path).read_text()
        assert old in text, (path, old)
        (folder / path).write_text(text.replace(old, new))

    return change


def _write(path: str, text: str) -> Callable[[Path, str], None]:
    def write(folder: Path, name: str) -> None:
        (folder / path).write_text(text.replace("{output}", BASES[name][3]))

    return write


def _extend(path: str, text: str) -> Callable[[Path, str], None]:
    def extend(folder: Path, name: str) -> None:
        with (folder / path).open("a") as file:
            file.write(text.replace("{output}", BASES[name][3]))

    return extend


def _wrong_output(folder: Path, name: str) -> None:
    _extend("solution/solve.sh", "echo 'not this' > /app/{output}\n")(folder, name)


def _baked(folder: Path, name: str) -> None:
    _extend("environment/Dockerfile", "RUN printf '212' > /opt/expected_{output}\n")(folder, name)
    test = "\n\ndef test_same():\n    assert open('/opt/expected_{output}').read() is not None\n"
    _extend("tests/test_outputs.py", test)(folder, name)


def _copied(what: str) -> Callable[[Path, str], None]:
    def copy(folder: Path, name: str) -> None:
        shutil.copytree(folder / what, folder / "environment" / "extra")
        _extend("environment/Dockerfile", "COPY extra/ /srv/extra/\n")(folder, name)

    return copy


def _in_instruction(folder: Path, name: str) -> None:
    _extend("instruction.md", f"\nFor instance:\n\n{BASES[name][1]}\n")(folder, name)


def _history(packed: bool, tag: bool = False, undone: bool = False) -> Callable[[Path, str], None]:
    def commit(folder: Path, name: str) -> None:
        repository = folder / "environment" / "repo"
        repository.mkdir()

        def git(*words: str) -> None:
            own = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "gc.auto=0"]
            subprocess.run(["git", *own, *words], cwd=repository, check=True, capture_output=True)

        git("init", "-q", "-b", "main")
        (repository / "README").write_text("start\n" * 40)
        git("add", ".")
        git("commit", "-qm", "start")
        (repository / "work.py").write_text(BASES[name][1])
        git("add", ".")
        git("commit", "-qm", "done")
        if tag:
            git("tag", "-a", "v1", "-m", "release")
        if undone:
            git("reset", "-q", "--hard", "HEAD~1")
        else:
            git("rm", "-q", "work.py")
            git("commit", "-qm", "start again")
        if packed:
            git("gc", "-q", *(() if undone else ("--prune=now",)))
        _extend("environment/Dockerfile", "COPY repo/ /app/repo/\n")(folder, name)

    return commit


def _in_image(folder: Path, name: str) -> None:
    (folder / "environment" / "check.py").write_text(BASES[name][2] + f"\n\ntest_{'x'}=None\n")
    _extend("environment/Dockerfile", "COPY check.py /app/check.py\n")(folder, name)
    _change(
        "tests/test.sh", "pytest --noconftest -q /tests/test_outputs.py", "python3 /app/check.py"
    )(folder, name)


def _link(folder: Path, name: str) -> None:
    (folder / "environment" / "data" / "more.csv").symlink_to("/etc/passwd")


def _first_half(folder: Path, name: str) -> None:
    text = (
        "def test_start():\n    with open('/app/{output}') as file:\n        assert file.read(3)\n"
    )
    _write("tests/test_outputs.py", text)(folder, name)


FLAKY = "\n\ndef test_quick():\n    import random\n\n    assert random.random() < 0.6\n"
# kind -> how it is planted, and the checks that find it
FOLDER_FAULTS: dict[str, tuple[Callable[[Path, str], None], set[str]]] = {
    "a solution with a wrong output": (_wrong_output, {SOLUTION}),
    "no solution": (lambda folder, name: (folder / "solution/solve.sh").unlink(), {LAYOUT}),
    "a link out of the folder": (_link, {LAYOUT}),
    "tests that assert nothing": (_write("tests/test_outputs.py", NO_ASSERT), {NOTHING}),
    "a reward without a condition": (_write("tests/test.sh", UNCONDITIONAL), {NOTHING}),
    "tests that look for a file alone": (_write("tests/test_outputs.py", PRESENT), {WRONG}),
    "tests of the first characters": (_first_half, {WRONG}),
    "a test that draws": (_extend("tests/test_outputs.py", FLAKY), {REPEATS, SOLUTION}),
    "tests in the image": (_copied("tests"), {CONTAINED}),
    "the solution in the image": (_copied("solution"), {CONTAINED, LEAK}),
    "the solution in the instruction": (_in_instruction, {LEAK}),
    "an expected output in the image": (_baked, {LEAK}),
    "the solution in a packed commit": (_history(packed=True), {LEAK}),
    "the solution in a loose object": (_history(packed=False), {LEAK}),
    "the solution behind a tag": (_history(packed=True, tag=True, undone=True), {LEAK}),
    "the solution in the reflog alone": (_history(packed=True, undone=True), {LEAK}),
    "a verifier that the model can replace": (_in_image, {CONTAINED}),
    "tests started beside the model's files": (
        _change("tests/test.sh", APART, BESIDE), {PLANTED}),
    "a reward file that is never cleared": (_write("tests/test.sh", NEVER_CLEARED), {PLANTED}),
}  # fmt: skip


def write_folders(folder: Path, each: int) -> dict[str, tuple[str, set[str]]]:
    """Write clean tasks and copies with a fault; return the fault and its checks by name."""
    faults = dict[str, tuple[str, set[str]]]()
    for name in list(BASES)[:each]:
        write_base(folder / name, name)
        for kind, (plant, checks) in FOLDER_FAULTS.items():
            planted = f"{name}-{kind.replace(' ', '-').replace(chr(39), '')}"
            write_base(folder / planted, name)
            plant(folder / planted, name)
            faults[planted] = (kind, checks)
    return faults
