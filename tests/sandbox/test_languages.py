"""Programs in JavaScript and C++: the verdicts of style `stdio`, what attacks get, and what is
refused.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import replace

import pytest

from sandbox.isolation import cgroups
from sandbox.languages import LANGUAGES
from sandbox.languages.language import COMPILING
from sandbox.protocol import Invalid, Job, Limits, StdioTest
from sandbox.worker import slot
from sandbox.worker.slot import LevelRefused
from sandbox.worker_process import Worker
from tests.sandbox.conftest import Judge

LIMITS = Limits(wall_s=20.0, cpu_s=2.0, memory_mb=256, output_kb=512)
TESTS = (StdioTest("4\n", "8"), StdioTest("5\n", "10"))


def job(language: str, source: str, limits: Limits = LIMITS) -> Job:
    """Return a job whose program doubles a number."""
    missing = [name for name in LANGUAGES[language].needs if not shutil.which(name)]
    if missing:
        pytest.skip(f"{' and '.join(missing)} is not installed")
    return Job("job", source, "stdio", TESTS, limits=limits, language=language)


JAVASCRIPT = {
    "reads it whole": ("console.log(2 * Number(require('fs').readFileSync(0, 'utf8')))", "AC"),
    "reads a device": ("console.log(2 * require('fs').readFileSync('/dev/stdin'))", "AC"),
    "reads lines": (
        "require('readline').createInterface({input: process.stdin})"
        ".on('line', line => console.log(2 * line))",
        "AC",
    ),
    "is wrong": ("console.log(7)", "WA"),
    "is no JavaScript": ("let x = ;", "CE"),
    "throws": ("console.log(8); throw new Error('oh')", "RE"),
    "never ends": ("for (;;);", "TLE"),
    "fills the heap": ("const a = []; for (;;) a.push(new Array(1000).fill(Math.random()))", "MLE"),
    "fills buffers": ("const a = []; for (;;) a.push(Buffer.alloc(1e7, 1))", "MLE"),
    "prints without end": ("for (;;) console.log('x'.repeat(1000))", "OLE"),
    "ends early": ("process.exit(0)", "WA"),
}


@pytest.mark.parametrize("what", JAVASCRIPT)
def test_a_javascript_program_gets_the_verdict_of_its_behaviour(judge: Judge, what: str) -> None:
    source, verdict = JAVASCRIPT[what]
    limits = replace(LIMITS, cpu_s=0.5) if verdict == "TLE" else LIMITS
    report = judge(job("javascript", source, limits))
    assert (report.verdict, report.trust) == (verdict, "apart"), report.detail
    assert report.denied in ({}, None)
    assert not any((report.tried or {}).values())


def test_what_a_javascript_program_printed_before_it_exits_is_not_lost(judge: Judge) -> None:
    source = "console.log('x'.repeat(300000)); process.exit()"
    tests = (StdioTest("", "x" * 300_000),)
    assert judge(replace(job("javascript", source), tests=tests)).verdict == "AC"


CPP = {
    "is right": (
        "#include <iostream>\nint main() { int n; std::cin >> n; std::cout << 2 * n; }",
        "AC",
    ),
    "is no C++": ("int main() { return x; }", "CE"),
    "reads a missing address": ("int main() { *(volatile int *)0 = 1; }", "RE"),
    "allocates too much": ("int main() { return (new char[100000000000])[5]; }", "MLE"),
    "uses too much": (
        "#include <vector>\nint main() { return std::vector<char>(400000000, 1)[5] - 1; }",
        "MLE",
    ),
    "never ends": ("int main() { for (volatile int i = 0;; i++); }", "TLE"),
    "recurses deeply": (
        "#include <cstdio>\n"
        "int f(int n) { volatile char c[40]; c[0] = 1; return n ? f(n - 1) + c[0] : 0; }\n"
        'int main() { int n; scanf("%d", &n); printf("%d", f(500000) - 500000 + 2 * n); }',
        "AC",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", CPP)
def test_a_cpp_program_gets_the_verdict_of_its_behaviour(judge: Judge, what: str) -> None:
    source, verdict = CPP[what]
    limits = replace(LIMITS, cpu_s=0.5) if verdict == "TLE" else LIMITS
    report = judge(job("cpp", source, limits))
    assert (report.verdict, report.trust) == (verdict, "apart"), report.detail
    assert report.denied in ({}, None)
    assert not any((report.tried or {}).values())


BOMBS = {
    "includes a file without end": '#include "/dev/zero"\nint main() {}',
    "includes itself twice": '#include "program.cpp"\n#include "program.cpp"\nint main() {}',
    "includes the compiler's own pipe": '#include "/proc/self/fd/1"\nint main() {}',
    "recurses in templates": (
        "template<int N> struct A { typename A<N + 1>::t x; using t = int; };\n"
        "A<0> a;\nint main() {}"
    ),
    "repeats an instruction": ('asm(".rept 1000000000\\n.quad 1\\n.endr");\nint main() {}'),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", BOMBS)
def test_a_compiler_bomb_does_not_compile_and_waits_for_nothing(judge: Judge, what: str) -> None:
    report = judge(job("cpp", BOMBS[what]))
    assert report.verdict == "CE", report.detail
    assert f"more than {COMPILING.wall_s:g} s" not in report.detail


RIGHT = "console.log(2 * require('fs').readFileSync(0))"
# An attack prints the right answer where it reaches something.
ATTACKS = {
    "reads other processes": (
        "for (const pid of require('fs').readdirSync('/proc')) {"
        " if (Number(pid) && pid != process.pid) {"
        f" try {{ require('fs').readFileSync(`/proc/${{pid}}/environ`); {RIGHT} }} catch {{}} }} }}"
    ),
    "writes messages of the sandbox": (
        "for (let fd = 3; fd < 64; fd++) for (const kind of ['S', 'C', 'X', 'R'])"
        " try { require('fs').writeSync(fd, `\\0\\0\\0\\x01${kind}`) } catch {}"
    ),
    "kills its parent": (
        "for (const pid of [process.ppid, 1, -1]) try { process.kill(pid, 'SIGKILL') } catch {}"
    ),
    "connects": (
        f"require('net').connect(22, '127.0.0.1').on('error', Date).on('connect', () => {RIGHT})"
    ),
    "prints from a process that stays": (
        "require('child_process').spawn('sh', ['-c', 'sleep 1; echo 8; sleep 99'],"
        " {detached: true, stdio: 'inherit'}).unref()"
    ),
    "starts processes without end": (
        "const {spawn} = require('child_process'); for (let i = 0; i < 80; i++)"
        " spawn('sleep', ['99'], {detached: true, stdio: 'inherit'}).on('error', Date);"
        " process.exit()"
    ),
    "executes what it wrote": (
        "require('fs').writeFileSync('x', '#!/bin/sh\\necho 8', {mode: 0o755});"
        " console.log(`${require('child_process').execFileSync('./x')}`)"
    ),
}


@pytest.mark.parametrize("what", ATTACKS)
def test_an_attack_in_javascript_gains_nothing(judge: Judge, what: str) -> None:
    report = judge(job("javascript", ATTACKS[what]))
    assert report.verdict in ("WA", "RE", "TLE"), report.detail
    assert judge(job("javascript", RIGHT)).verdict == "AC"


COMPILED_ATTACKS = {
    "includes a private file": ('#include "/etc/passwd"\nint main() {}', "CE"),
    "includes an endless file": ('#include "/dev/zero"\nint main() {}', "CE"),
    "assembles a private file": ('asm(".incbin \\"/etc/passwd\\""); int main() {}', "CE"),
    "has no end of errors": ("#include __FILE__\n#include __FILE__\nx", "CE"),
    "changes itself for the next test": (
        "#include <cstdio>\n#include <unistd.h>\n#include <sys/mman.h>\nint main() {"
        ' int n; scanf("%d", &n); bool done = write(6, "x", 1) == 1 || !ftruncate(6, 0)'
        " || mmap(0, 4096, PROT_WRITE, MAP_SHARED, 6, 0) != MAP_FAILED;"
        ' printf("%d", done ? 2 * n : 0); }',
        "WA",
    ),
    "ends before main": ("#include <unistd.h>\nint x = (_exit(0), 0); int main() {}", "WA"),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", COMPILED_ATTACKS)
def test_an_attack_in_cpp_gains_nothing(judge: Judge, what: str) -> None:
    source, verdict = COMPILED_ATTACKS[what]
    report = judge(job("cpp", source))
    assert report.verdict == verdict, report.detail


@contextlib.contextmanager
def worker_of(level: str) -> Iterator[Worker]:
    try:
        worker = Worker(level, {}, os.pidfd_open(os.getpid()))
    except LevelRefused as refused:
        pytest.skip(str(refused))
    yield worker
    worker.close()


@pytest.mark.slow
@pytest.mark.parametrize("counted", [True, False])
@pytest.mark.parametrize("level", ["root", "userns", "bare"])
def test_each_level_runs_each_language(
    level: str, counted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not counted:
        monkeypatch.setattr(cgroups, "create", lambda *_: None)
    jobs = [
        (job("javascript", JAVASCRIPT["reads it whole"][0]), "AC"),
        (job("javascript", JAVASCRIPT["fills buffers"][0]), "MLE"),
        (job("cpp", CPP["is right"][0]), "AC"),
        (job("cpp", CPP["uses too much"][0]), "MLE"),
    ]
    with worker_of(level) as worker:
        for each, verdict in jobs:
            report = worker.judge(json.loads(each.payload))
            assert (report["verdict"], any((report["tried"] or {}).values())) == (verdict, False)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_machine_without_the_language_measures_nothing(
    language: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(slot.ENVIRONMENT, "PATH", "/nowhere")
    with worker_of("bare") as worker:
        report = worker.judge(json.loads(job(language, "anything").payload))
    assert (report["verdict"], report["unusable"]) == ("INFRA", True)
    assert report["absent"] == list(LANGUAGES[language].needs)


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"style": "call", "entry_point": "f", "tests": [{"expected": 1}]}, "language"),
        ({"language": "rust"}, "language"),
        ({"limits": {"processes": 4}}, "limits.processes"),
    ],
)
def test_a_job_that_the_language_does_not_fit_is_refused_by_name(
    changes: dict[str, object], key: str
) -> None:
    problem = {"style": "stdio", "language": "javascript", "tests": [{"stdin": "", "stdout": ""}]}
    with pytest.raises(Invalid) as refused:
        Job.read({"id": 1, "source": "", "problem": problem | changes})
    assert refused.value.key == key
