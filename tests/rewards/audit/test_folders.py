"""A fault of a task folder is found by its check; a sound folder has none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from measurements.audit_folders import FOLDER_FAULTS
from measurements.audit_tasks import write_base
from problems.task_folders.needs import PYTEST
from rewards.audit.findings import CONTAINED, LAYOUT, LEAK, NOTHING, OTHERS, SOLUTION, AuditedTask
from rewards.audit.folders import audit_folders
from sandbox.sandbox import Sandbox, SandboxConfig

STATIC = [kind for kind, (_, checks) in FOLDER_FAULTS.items() if checks & {CONTAINED, LAYOUT, LEAK}]


@pytest.fixture(scope="module")
def with_pytest() -> Iterator[Sandbox]:
    with Sandbox(SandboxConfig(packages=PYTEST, workers=2)) as opened:
        yield opened


def statuses(task: AuditedTask) -> dict[str, str]:
    return {finding.check_id: finding.status for finding in task.findings}


def planted(folder: Path, kind: str, name: str = "total") -> Path:
    write_base(folder, name)
    FOLDER_FAULTS[kind][0](folder, name)
    return folder


@pytest.mark.parametrize("kind", STATIC)
def test_files_show_the_fault(kind: str, tmp_path: Path) -> None:
    [task] = audit_folders(planted(tmp_path / "task", kind), None)
    assert any(statuses(task)[check] == "fail" for check in FOLDER_FAULTS[kind][1])


@pytest.mark.parametrize(
    ("line", "evidence"),
    [("COPY more/ /app/", "copies more/, which is missing"), ("COPPY a b", "'COPPY'")],
)
def test_a_dockerfile_that_cannot_be_built_is_named(
    line: str, evidence: str, tmp_path: Path
) -> None:
    write_base(tmp_path / "task", "total")
    with (tmp_path / "task/environment/Dockerfile").open("a") as file:
        file.write(f"{line}\n")
    [task] = audit_folders(tmp_path / "task", None)
    finding = next(each for each in task.findings if each.check_id == LAYOUT)
    assert (finding.status, evidence in finding.evidence) == ("fail", True)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("task.toml", "a = " + "[" * 5000),
        ("task.toml", "[environment]\ndocker_image = 3\nsteps = 1\n"),
        ("environment/Dockerfile", "COPY\nENV\nFROM\nADD <<EOF /x\n\\\n"),
        ("tests/test.sh", "echo 1.2.3 > reward.txt\n"),
        ("solution/solve.sh", "\0\udcff"),
    ],
    ids=["deep", "types", "dockerfile", "number", "bytes"],
)
def test_broken_files_do_not_end_the_audit(path: str, text: str, tmp_path: Path) -> None:
    write_base(tmp_path / "task", "total")
    (tmp_path / "task" / path).write_bytes(text.encode("utf-8", "surrogateescape"))
    [task] = audit_folders(tmp_path / "task", None)
    assert task.findings


@pytest.mark.parametrize(
    ("script", "status"),
    [
        ("pytest x\necho 1 > /logs/verifier/reward.txt\n", "fail"),
        ("if pytest x; then echo 1 > reward.txt; else echo 0 > reward.txt; fi\n", "skip"),
        ("pytest x && echo 1 > /logs/verifier/reward.txt\n", "skip"),
    ],
)
def test_a_reward_without_a_condition_is_read_from_the_script(
    script: str, status: str, tmp_path: Path
) -> None:
    write_base(tmp_path / "task", "total")
    (tmp_path / "task/tests/test.sh").write_text(script)
    [task] = audit_folders(tmp_path / "task", None)
    assert statuses(task)[NOTHING] == status


@pytest.mark.slow
def test_a_sound_folder_passes_every_check(tmp_path: Path, with_pytest: Sandbox) -> None:
    write_base(tmp_path / "task", "summary")
    [task] = audit_folders(tmp_path / "task", with_pytest)
    assert set(statuses(task).values()) == {"pass"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", ["tests that assert nothing", "tests started beside the model's files"]
)
def test_runs_show_the_fault(kind: str, tmp_path: Path, with_pytest: Sandbox) -> None:
    [task] = audit_folders(planted(tmp_path / "task", kind), with_pytest)
    assert any(statuses(task)[check] == "fail" for check in FOLDER_FAULTS[kind][1])


def test_what_needs_an_image_is_not_run_and_says_why(tmp_path: Path, with_pytest: Sandbox) -> None:
    write_base(tmp_path / "task", "total")
    recipe = tmp_path / "task/environment/Dockerfile"
    recipe.write_text("FROM node:22\n")
    [task] = audit_folders(tmp_path / "task", with_pytest)
    finding = next(each for each in task.findings if each.check_id == SOLUTION)
    assert (finding.status, "node:22" in finding.evidence) == ("skip", True)
    assert task.status == "skip"


@pytest.mark.slow
def test_a_hostile_task_reaches_nothing_outside_the_sandbox(
    tmp_path: Path, with_pytest: Sandbox
) -> None:
    write_base(tmp_path / "task", "total")
    victim = tmp_path / "victim"
    victim.write_text("kept")
    script = f"#!/bin/bash\nrm -rf {victim} {tmp_path} / 2>/dev/null\necho x > {tmp_path}/made\n"
    for path in ("solution/solve.sh", "tests/test.sh"):
        (tmp_path / "task" / path).write_text(script)
    hook = tmp_path / "task/environment/repo/.git/hooks/post-checkout"
    hook.parent.mkdir(parents=True)
    hook.write_text(script)
    hook.chmod(0o755)
    (tmp_path / "task/environment/repo/.git/config").write_text(f"[core]\n\tfsmonitor = {hook}\n")
    list(audit_folders(tmp_path / "task", with_pytest))
    assert victim.read_text() == "kept"
    assert not (tmp_path / "made").exists()


OPENENV = """\
spec_version: 1
name: total
validation:
  capabilities:
    oracle: {form: script, location: solution/solve.sh}
    verifier: {kind: script, entry: tests/test.sh}
"""


def openenv(folder: Path, recipe: str) -> Path:
    write_base(folder, "total")
    (folder / "task.toml").unlink()
    (folder / "openenv.yaml").write_text(OPENENV)
    (folder / "Dockerfile").write_text(recipe)
    return folder


@pytest.mark.parametrize(("ignored", "status"), [("", "fail"), ("solution\ntests\n", "pass")])
def test_an_openenv_image_with_its_oracle_is_found(
    ignored: str, status: str, tmp_path: Path
) -> None:
    folder = openenv(tmp_path / "task", "FROM python:3.12\nWORKDIR /app\nCOPY . /app\n")
    (folder / ".dockerignore").write_text(ignored)
    [task] = audit_folders(folder, None)
    assert (task.kind, statuses(task)[CONTAINED]) == ("openenv", status)


@pytest.mark.parametrize("location", ["../../etc/passwd", "/etc/passwd"])
def test_an_openenv_manifest_names_no_file_outside_its_package(
    location: str, tmp_path: Path
) -> None:
    folder = openenv(tmp_path / "task", "FROM python:3.12\n")
    text = OPENENV.replace("solution/solve.sh", location)
    (folder / "openenv.yaml").write_text(text)
    [task] = audit_folders(folder, None)
    assert statuses(task)[SOLUTION] == "skip"


def test_a_verifiers_environment_is_read_and_not_run(tmp_path: Path) -> None:
    package = tmp_path / "environment" / "sums"
    package.mkdir(parents=True)
    (package.parent / "pyproject.toml").write_text(
        '[project]\nname = "sums"\ndependencies = ["verifiers>=0.4"]\n'
    )
    made = tmp_path / "made"
    (package / "taskset.py").write_text(
        f"open({str(made)!r}, 'w')\n\n\nclass Sums(Taskset):\n    pass\n"
    )
    answer = "the sum of the two numbers is exactly forty two"
    (package / "rows.jsonl").write_text(f'{{"question": "Say: {answer}", "answer": "{answer}"}}\n')
    [task] = audit_folders(tmp_path / "environment", None)
    assert statuses(task)[LEAK] == "fail"
    assert statuses(task)[OTHERS] == "skip"
    assert task.kind == "verifiers"
    assert not made.exists()
