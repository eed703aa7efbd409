"""One worker: reads jobs, has each judged in its slots, writes reports. A process of its own,
started by exec.

Frames on stdin and stdout contain JSON. The first is a hello: {"isolation"}, {"refused"} or
{"broken"}. Then each job gets one answer: a report, or {"broken"}, after which this process ends.
The owner then starts another worker and retries the job once.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1]))

from sandbox import folders
from sandbox.isolation import levels, process_tree
from sandbox.languages import LANGUAGES
from sandbox.languages.language import Language
from sandbox.limits import Limits
from sandbox.protocol import Job, StdioTest
from sandbox.seeding import hash_seed
from sandbox.styles import STYLES
from sandbox.styles.style import Style
from sandbox.verdict import Verdict
from sandbox.wire import Frames, frame
from sandbox.worker.attempt_processes import AttemptProcesses
from sandbox.worker.messages import complete_rows
from sandbox.worker.slot import ENVIRONMENT, READ_BYTES, Broken, LevelRefused, Slot

LEAVE_S = 1.0  # time to clean up in when the owner is gone
# attempts to start a zygote that is killed before it can say whether its isolation level holds
STARTS = 3
# Modules that the zygotes of each role import. A style with modules of its own is a role, and so is
# another language.
PRELOADS: dict[str, tuple[str, ...]] = {
    "program": (),
    "judge": (),
    **{style.name: style.preload for style in STYLES.values() if style.preload},
    **dict.fromkeys(LANGUAGES, ()),
}
# Slow to import: in a slot with a package folder, forks share what the zygote has imported.
SLOW_IMPORTS = (
    "numpy.random", "pandas", "matplotlib.pyplot", "scipy.stats", "seaborn", "sklearn.cluster",
    "sklearn.decomposition", "sklearn.ensemble", "sklearn.linear_model", "sklearn.metrics",
    "sklearn.model_selection", "sklearn.preprocessing", "requests", "nltk", "faker", "bs4",
)  # fmt: skip


class Worker:
    """The slots of one worker, and how it judges a job.

    There are slots for programs and for judges, each with and without numpy, and for programs that
    share the interpreter with their tests. Each slot is started when it is first needed.
    A judge has a zygote of its own, so that no program shares a process table, a cgroup or a uid
    with it.
    """

    def __init__(self, level: str, packages: dict[str, str], owner: int) -> None:
        self.packages, self.owner = packages, owner
        self.scratch = tempfile.mkdtemp(prefix=f"ratchet-scratch-{os.getpid()}-")
        # On level bare a program may have its own uid and must be able to reach the folder it may
        # write.
        Path(self.scratch).chmod(0o711)
        self.slots: dict[tuple[str, bool], Slot] = {}
        self.seed = 0  # of the current job
        self.languages: set[str] = set()  # whose example has run here
        self.level = level
        self._slot("program")

    @property
    def isolation(self) -> str:
        return (self.slots.get(("program", False)) or self._slot("program")).isolation

    def judge(self, job: dict[str, Any]) -> dict[str, Any]:
        """Return the report as plain data. Raises Broken when the slot fails and no program can
        have caused it.
        """
        started = time.monotonic()
        limits = Limits(**job["limits"])
        folder, self.seed = job["package_folder"], job["seed"]
        if folder and not self._reaches(folder):
            return self._lacking(job, [f"{folder}, readable by all users"])
        known = _modules(folder) if folder else self.packages
        if absent := [name for name in job["packages"] if name not in known]:
            return self._lacking(job, absent)
        if (language := LANGUAGES.get(job["language"])) and (why := self._refuses(language)):
            return self._lacking(job, list(language.needs), why)
        style = STYLES[job["style"]]
        slots = [self._program_slot(style, job)]
        denied = slots[0].denied
        processes = AttemptProcesses(slots, job, limits, self.owner, self._judges)
        attempt = style.attempt(processes)
        try:
            results = processes.within_limits(attempt.run())
        except Broken:
            if not processes.ran_out_of_memory():
                raise
            results = []  # the kernel killed the zygote together with the program
            self._drop(slots)
        except (ArithmeticError, LookupError, RecursionError, ValueError) as error:
            # Caused by the program's messages: no other input is new.
            traceback.print_exc()
            results = [
                [
                    Verdict.RE,
                    f"what it did could not be followed: {type(error).__name__}: {error}"[:300],
                    0.0,
                ]
            ]
            self._drop(slots)
        results = complete_rows(results, attempt.total)
        refused, tried = denied.take() if denied else (None, None)
        worst = next(
            (result for result in results if result[0] != Verdict.AC), [Verdict.AC, "", 0.0]
        )
        return {
            "id": job["id"], "verdict": worst[0], "detail": worst[1], "tests": results,
            "cpu_s": processes.cpu_s, "peak_bytes": processes.peak_bytes,
            "wall_s": time.monotonic() - started,
            "isolation": self.isolation,
            "denied": refused, "tried": tried,
            "trust": "shared" if attempt.shared else "apart", "unusable": attempt.unusable,
            "names": attempt.names, "absent": [],
        }  # fmt: skip

    def _reaches(self, folder: str) -> bool:
        """Whether a program can read this folder: it exists on this machine, and if programs have a
        uid of their own and no mounts, each folder above it may be entered.
        """
        above = Path(folder).parents if self.level == "bare" and levels.has_own_uid("bare") else ()
        return Path(folder).is_dir() and all(path.stat().st_mode & 0o001 for path in above)

    def _refuses(self, language: Language) -> str:
        """Return why programs in this language do not run here; "" where its example does."""
        if language.name in self.languages:
            return ""
        test, limits = StdioTest("42", "42"), Limits(wall_s=20.0, cpu_s=10.0)
        example = Job("", language.example, "stdio", (test,), limits=limits, language=language.name)
        self.languages.add(language.name)
        report = self.judge(json.loads(example.payload))
        if report["verdict"] == Verdict.AC:
            return ""
        self.languages.discard(language.name)
        return (
            f"not measured: the problem needs {' and '.join(language.needs)}, and no "
            f"{language.title} program runs here: install it for all users, in "
            f"{ENVIRONMENT['PATH']} (an example ended with {report['verdict']} {report['detail']})"
        )

    def _lacking(self, job: dict[str, Any], absent: list[str], why: str = "") -> dict[str, Any]:
        """Return the report of a job that needs what is missing here; the program is not run.

        absent: names of packages, or with `why` of a language's programs.
        """
        why = why or (
            f"not measured: the problem needs {', '.join(absent)}, which programs here "
            "cannot import; install and name it in the sandbox's packages"
        )
        return {
            "id": job["id"], "verdict": Verdict.INFRA, "detail": why,
            "tests": [[Verdict.INFRA, why, 0.0] for _ in job["tests"]], "cpu_s": 0.0,
            "peak_bytes": 0, "wall_s": 0.0, "isolation": self.isolation, "denied": None,
            "tried": None, "trust": "apart", "unusable": True,
            "names": [], "absent": absent,
        }  # fmt: skip

    def _program_slot(self, style: Style, job: dict[str, Any]) -> Slot:
        texts = [job["source"]]
        if job["language"] in LANGUAGES and not style.preload:  # else Python runs the program
            return self._slot(job["language"])
        if style.shared:
            texts += [text for test in job["tests"] for text in test.values()]
        return self._slot(
            style.name if style.preload else "program",
            numpy=any("numpy" in text for text in texts),
            folder=job["package_folder"],
        )

    def _judges(self, job: dict[str, Any]) -> Slot:
        tests = [job["source"], *(test.get("source", "") for test in job["tests"])]
        texts = [job["checker"]] if job["checker"] else tests
        return self._slot("judge", numpy=any("numpy" in text for text in texts))

    def close(self) -> None:
        for slot in self.slots.values():
            slot.close()
        folders.remove(self.scratch)

    def _slot(self, role: str, *, numpy: bool = False, folder: str = "") -> Slot:
        """role: one of PRELOADS. Modules that only some programs need have slots of their own: they
        would make every other fork more expensive.

        folder: the job's package folder. It replaces the slot with numpy; one folder at a time.
        A slot with another hash seed than the job's is replaced too.
        """
        kind = (role, bool(folder) or (numpy and "numpy" in self.packages))
        if (slot := self.slots.get(kind)) and (
            slot.package_folder != folder or hash_seed(slot.seed) != hash_seed(self.seed)
        ):
            self._drop([slot])
        if kind not in self.slots:
            slow = ["numpy", "numpy.random"] if kind[1] else []
            if folder:
                modules = _modules(folder)
                slow = [name for name in SLOW_IMPORTS if name.partition(".")[0] in modules]
            preload = [*PRELOADS[role], *slow]
            number = 2 * list(PRELOADS).index(role) + kind[1]
            self.slots[kind] = Slot(
                self.level,
                self.packages,
                preload,
                number,
                self.scratch,
                judge=role == "judge",
                language=LANGUAGES.get(role),
                shows_machine=role in STYLES and STYLES[role].shared,
                package_folder=folder,
                seed=self.seed,
            )
        self.slots[kind].seed = self.seed
        return self.slots[kind]

    def _drop(self, slots: list[Slot]) -> None:
        self.slots = {kind: slot for kind, slot in self.slots.items() if slot not in slots}
        for slot in slots:
            slot.close()


@cache
def _modules(folder: str) -> frozenset[str]:
    """Return the names of the modules in a folder of packages."""
    return frozenset(path.name.partition(".")[0] for path in Path(folder).iterdir())


def climb(level: str, packages: dict[str, str], owner: int) -> Worker:
    """Start a worker on this isolation level, or with "auto" on the highest that the machine
    allows.

    Raises LevelRefused when no level is allowed, and Broken when zygotes end before they can say.
    Broken is no reason to try a lower level.
    """
    reasons = []
    for candidate in levels.LEVELS if level == "auto" else (level,):
        try:
            return _started(candidate, packages, owner)
        except LevelRefused as refusal:
            reasons.append(str(refusal))
    raise LevelRefused("; ".join(reasons))


def _started(level: str, packages: dict[str, str], owner: int) -> Worker:
    for _ in range(STARTS - 1):
        with contextlib.suppress(Broken):
            return Worker(level, packages, owner)
    return Worker(level, packages, owner)


def main() -> None:
    config = json.loads(sys.argv[1])
    source, target = os.dup(0), os.dup(1)
    # In a container the owner's process is not visible, so the end of the input stands for its end.
    # During a job no other input arrives.
    owner = source
    if config["owner"]:
        owner = os.pidfd_open(config["owner"])
        if os.getppid() != config["owner"]:
            sys.exit(1)
    # Where the input stands for the owner, wait only for its end: its data is for the worker to
    # read.
    threading.Thread(
        target=_end_without, args=(owner, select.POLLIN if owner != source else 0), daemon=True
    ).start()
    if config.get("core") is not None:
        # The machine may have lost this core meanwhile; then run on any.
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, {config["core"]})
    # SCHED_BATCH: the worker's program keeps running while there is something to read, instead of
    # being preempted for each test.
    with contextlib.suppress(OSError):
        # RESET_ON_FORK: programs get the default policy again
        os.sched_setscheduler(0, os.SCHED_BATCH | os.SCHED_RESET_ON_FORK, os.sched_param(0))
    os.dup2(2, 1)  # no stray print may end up between the reports
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    try:
        worker = climb(config["isolation"], config["packages"], owner)
    except LevelRefused as refusal:
        _write(target, {"refused": str(refusal)})
        return
    except Broken as failure:
        _write(target, {"broken": str(failure)})
        return
    try:
        levels.become_subreaper()
        _write(target, {"isolation": worker.isolation})
        for payload in _jobs(source, owner):
            _write(target, worker.judge(json.loads(payload)))
    except (Broken, LevelRefused) as failure:
        # LevelRefused comes from a slot that is started later than the first.
        _write(target, {"broken": str(failure)})
    except BrokenPipeError:
        pass  # the owner is gone, as at the end of `_jobs`
    finally:
        worker.close()
        if worker.level == "bare":
            process_tree.kill_descendants()  # descendants whose outer process was killed


def _end_without(owner: int, event: int) -> None:
    """Thread function: wait for the owner's end, then end this process whatever it is doing. The
    worker notices the end too and has LEAVE_S to clean up before that.
    """
    poll = select.poll()
    poll.register(owner, event)
    poll.poll()
    time.sleep(LEAVE_S)
    process_tree.kill_descendants()  # the worker may be waiting for one of them
    time.sleep(LEAVE_S / 2)
    os._exit(1)


def _jobs(source: int, owner: int) -> Iterator[bytes]:
    """Yield jobs until the owner closes its end or is gone."""
    frames = Frames(most=1 << 31)
    while True:
        ready, _, _ = select.select([source, owner], [], [])
        if (owner != source and owner in ready) or not (data := os.read(source, READ_BYTES)):
            return
        yield from frames.feed(data)


def _write(target: int, message: dict[str, Any]) -> None:
    view = memoryview(frame(json.dumps(message).encode()))
    while view:
        view = view[os.write(target, view) :]


if __name__ == "__main__":
    main()
