"""Style `repository`: a task folder as a problem, and scripts that try to pass it unsolved."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from measurements.audit_tasks import write_base
from problems.columns import ProblemError
from problems.reading.place import Place
from problems.schema import Problem
from problems.shapes.swe import SWE
from problems.sources.registry import load
from problems.task_folders.needs import PYTEST
from sandbox.protocol import Report
from sandbox.sandbox import Sandbox, SandboxConfig, run_all

# A test that would load all that lies beside it: it runs in the folder where the answer wrote.
TRUSTING = """\
#!/bin/bash
mkdir -p /logs/verifier
cp /tests/test_outputs.py /app/
cd /app
[ -d .git ] && git status
if pytest -q test_outputs.py; then echo 1 > /logs/verifier/reward.txt; fi
"""
PASS = "import os\nopen('/scratch/r/logs/verifier/reward.txt', 'w').write('1')\nos._exit(0)\n"
HOOK = (
    "import pytest\n@pytest.hookimpl(hookwrapper=True)\n"
    "def pytest_runtest_makereport(item, call):\n"
    "    outcome = yield\n    outcome.get_result().outcome = 'passed'\n"
)
DAEMON = "for i in $(seq 600); do echo 1 > /logs/verifier/reward.txt; sleep 0.1; done"
ATTACKS = {
    "does nothing": "true",
    "reads the tests": "cat /tests/* /proc/$PPID/mem > /app/total.txt",
    "reads what Python holds": (
        "for p in /proc/[0-9]*; do tr '\\0' '\\n' < $p/environ; cat $p/cmdline; done"
        " | grep -a -o 'answer=[0-9]*' > /app/total.txt"
    ),
    "replaces the tests": "mkdir -p /tests; echo 'def test_total(): pass' > /tests/test_outputs.py",
    "replaces the script": (
        "mkdir -p /tests; echo 'echo 1 > /logs/verifier/reward.txt' > /tests/test.sh"
    ),
    "writes the reward": "mkdir -p /logs/verifier; echo 1 > /logs/verifier/reward.txt",
    "leaves a daemon": f"(setsid bash -c '{DAEMON}' > /dev/null 2>&1 &)",
    "replaces a tool": "printf '#!/bin/bash\\nexit 0\\n' > /scratch/bin/pytest",
    "adds a tool": (
        "cat > /scratch/bin/cp <<'END'\n#!/bin/bash\n"
        "echo 'def test_total(): pass' > test_outputs.py\nmv test_outputs.py /app\nEND\n"
        "chmod 755 /scratch/bin/cp"
    ),
    "adds a link": (
        "rm -rf /scratch/r/logs; mkdir -p /scratch/mine/verifier; ln -s ../mine /scratch/r/logs; "
        "echo 1 > /scratch/mine/verifier/reward.txt"
    ),
    "moves the root away": (
        "mkdir -p /scratch/x/app; cp -r /app/* /scratch/x/app; "
        f"cat > /scratch/x/app/conftest.py <<'END'\n{HOOK}\nEND\n"
        "mv /scratch/r /scratch/old; ln -s /scratch/x /scratch/r"
    ),
    "makes a folder that stays": (
        f"cat > /app/conftest.py <<'END'\n{HOOK}\nEND\ntouch /app/test_outputs.py; chmod 555 /app"
    ),
    "stops the harness": "kill -STOP $PPID; kill -9 $PPID",
    "fills its memory": "printf 'print(1)' > /proc/$PPID/mem; echo 1 > /proc/$PPID/fd/1",
}
# Files that something loads unasked: each would pass the test if it stayed.
LOADED = {
    "conftest.py": HOOK,
    "sitecustomize.py": PASS,
    "usercustomize.py": PASS,
    "pytest.py": PASS,
    "pluggy/__init__.py": PASS,
    "re.py": PASS,
    "csv.py": PASS,
    "pytest.ini": "[pytest]\naddopts = --collect-only\n",
    "pyproject.toml": "[tool.pytest.ini_options]\naddopts = '--collect-only'\n",
    "tox.ini": "[pytest]\naddopts = --collect-only\n",
    "setup.cfg": "[tool:pytest]\naddopts = --collect-only\n",
    "__pycache__/test_outputs.cpython-311.pyc": "x",
    ".git/hooks/post-checkout": "#!/bin/bash\necho 1 > /logs/verifier/reward.txt\n",
    ".git/config": "[core]\n\tfsmonitor = echo 1 > /logs/verifier/reward.txt\n",
}
HOME = "/root"
PLACES = ("/app", HOME, f"{HOME}/.local/lib/python3.11/site-packages", "/scratch/bin")


@pytest.fixture(scope="module")
def with_pytest() -> Iterator[Sandbox]:
    with Sandbox(SandboxConfig(packages=PYTEST, workers=1)) as opened:
        yield opened


def problem(folder: Path) -> Problem:
    write_base(folder / "task", "total")
    (folder / "task/tests/test.sh").write_text(TRUSTING)
    [loaded] = load("mine", Place(folder)).problems
    return loaded


def judged(sandbox: Sandbox, task: Problem, script: str) -> Report:
    return run_all(sandbox, [task.job(script, "job")])[0]


@pytest.mark.slow
def test_the_solution_of_a_folder_passes(with_pytest: Sandbox, tmp_path: Path) -> None:
    task = problem(tmp_path)
    report = judged(with_pytest, task, task.solutions[0])
    assert (report.verdict, report.trust) == ("AC", "shared"), report.tests


@pytest.mark.slow
def test_a_level_without_a_file_system_of_its_own_is_not_the_programs_fault(
    level: Sandbox, tmp_path: Path
) -> None:
    task = problem(tmp_path)
    report = judged(level, replace(task, extra={"language": "bash"}), "true")
    assert report.verdict == ("INFRA" if report.isolation.startswith("bare") else "WA"), report


@pytest.mark.slow
@pytest.mark.parametrize("what", ATTACKS)
def test_an_attack_does_not_pass(with_pytest: Sandbox, tmp_path: Path, what: str) -> None:
    report = judged(with_pytest, problem(tmp_path), ATTACKS[what])
    assert report.verdict not in ("AC", "INFRA"), report


@pytest.mark.slow
def test_a_file_that_is_loaded_unasked_does_not_decide(
    with_pytest: Sandbox, tmp_path: Path
) -> None:
    task = problem(tmp_path)
    for place in PLACES:
        script = "".join(
            f"mkdir -p $(dirname {place}/{name}); cat > {place}/{name} <<'END'\n{text}\nEND\n"
            for name, text in LOADED.items()
        )
        report = judged(with_pytest, task, script)
        assert report.verdict == "WA", (place, report)


@pytest.mark.slow
def test_a_solution_beside_such_files_still_passes(with_pytest: Sandbox, tmp_path: Path) -> None:
    task = problem(tmp_path)
    script = f"echo 'broken(' > conftest.py\n{task.solutions[0]}"
    assert judged(with_pytest, task, script).verdict == "AC"


def test_without_pytest_it_is_not_measured(sandbox: Sandbox, tmp_path: Path) -> None:
    report = judged(sandbox, problem(tmp_path), "true")
    assert report.verdict == "INFRA"
    assert "pytest" in report.absent


def test_the_prompt_asks_for_a_script(tmp_path: Path) -> None:
    from problems.prompt import prompt_text

    prompt = prompt_text(problem(tmp_path))
    assert "Write the program in Bash." in prompt
    assert "/app/data/input.csv" in prompt
    assert "standard input" not in prompt


def test_a_folder_that_needs_an_image_is_refused_with_the_reason(tmp_path: Path) -> None:
    write_base(tmp_path / "task", "total")
    (tmp_path / "task/environment/Dockerfile").write_text("FROM postgres:17\n")
    [rejected] = load("mine", Place(tmp_path)).rejected
    assert "it starts from postgres:17" in rejected.reason


@pytest.mark.parametrize("more", [{"base_commit": "a" * 40}, {"image_name": "swesmith/x.1"}])
def test_a_swe_row_is_refused_by_name(more: dict[str, str]) -> None:
    row = {"instance_id": "x__y-1", "repo": "x/y", "patch": "", "FAIL_TO_PASS": ["t"]} | more
    assert SWE.matches(row)
    with pytest.raises(ProblemError, match="x__y-1 needs an image of"):
        SWE.read(row, "row 1")
