"""The warm parent process of programs: it is started by exec, confines itself once, and then forks
a fresh process for each program.

It never sees a test, an expected value or a source: those travel through descriptors that it only
passes on. It serves one slot and runs one job at a time. When a job ends, it kills and reaps every
process that is left, and the next job gets an empty scratch folder.

Orders arrive on a packet socket, as words: "start ROLE STYLE CPU_S ADDRESS_BYTES PROCESSES FILES
SEED" with descriptors, and "end".
Answers: "exit ROLE STATUS PEAK_BYTES" when a started process has ended by itself; "ended CPU_S
OWN_CPU_S" when nothing of the job is left, with the CPU seconds of all jobs so far that were waited
for, and those of this process. The hello before the first order is JSON.

A fork shares all pages. The first write to each, here or in the child, is a page fault that costs
some microseconds, which is most of what a small program costs. The code that runs for each job is
therefore short and plain on purpose.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import gc
import json
import os
import resource
import select
import signal
import socket
import sys
import time
from _signal import SIGINT, default_int_handler  # type: ignore[import-not-found]
from _signal import signal as set_handler
from collections.abc import Callable, Iterator, Sequence
from gc import enable as enable_gc
from os import chdir, close, closerange, dup2, setsid, write
from resource import RLIMIT_AS, RLIMIT_CPU, RLIMIT_NOFILE, RLIMIT_NPROC, setrlimit
from struct import unpack
from typing import Any, NoReturn

SIGKILL = int(signal.SIGKILL)  # ctypes takes no enum
MAX_ANCILLARY = socket.CMSG_SPACE(8 * 4)  # descriptors of one message, four bytes each
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
sys.path.append(ROOT)

# found through sys.path, set above
from sandbox import folders  # noqa: E402
from sandbox.child import prewarm, program, seeds, semaphores  # noqa: E402
from sandbox.isolation import file_tree, levels, process_tree, seccomp  # noqa: E402

EMPTY_S = 3.0  # to empty the scratch folder on a level without mounts
# Temporary shortages: they say nothing about which isolation level the machine allows.
SHORTAGES = (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE)
PRELOADED = (
    "abc array bisect collections collections.abc copy datetime decimal enum fractions "
    "functools heapq io itertools json math operator os.path "
    "queue random re string struct sys threading time traceback types typing"
)


_libc = ctypes.PyDLL(None)
# Not os.fork: its hooks in threading and random cost each child 0.5 ms, and protect only against
# threads and locks, which this process does not have. Not os.kill and os.wait4: after each job both
# find nothing left and raise an exception, which writes a dozen pages.
_fork, _kill, _waitpid = _libc.fork, _libc.kill, _libc.waitpid


class Zygote:
    def __init__(
        self,
        config: dict[str, Any],
        control: socket.socket,
        in_force: str,
        run: Callable[[str], NoReturn],
    ) -> None:
        """Keep the state of one slot.

        run: entry point of a child process after it has dropped privileges; its argument is the
            style of the job. config["seen"]: see `levels.drop`.
        """
        self.level, self.seen, self.seeded = config["level"], config["seen"], bool(config["seed"])
        self.shows_machine = config["shows_machine"]
        self.run, self.control, self.in_force = run, control, in_force
        self.uid = config["uid"] if levels.has_own_uid(self.level) else None
        self.readable = [config["package_path"], *config["packages"].values(), *config["shown"]]
        self.rules = (
            levels.file_rules(self.readable, os.environ["TMPDIR"]) if self.level == "bare" else None
        )
        self.own_pids = self.level != "bare"
        # otherwise the limit would count all processes of the user
        self.counts_processes = self.own_pids or self.uid is not None
        self.running: dict[int, tuple[str, int]] = {}  # pidfd -> role, pid
        self.tmp = os.environ["TMPDIR"]
        # Opened once: the seccomp listener is asked for each open.
        self.folder = os.open(self.tmp, os.O_RDONLY | os.O_DIRECTORY)
        self.clean_scratch = self._scratch_state()
        self.score, self.own_score = _oom_score()

    def serve(self) -> None:
        """Serve orders until the owner closes the socket."""
        program.use_streams()  # once here, not in each child
        prewarm.rehearse()
        gc.collect()
        gc.disable()
        gc.freeze()
        levels.restart_pids()
        self.control.send(
            json.dumps(
                {
                    "ready": self.in_force,
                    "uid": self.uid,
                    "own_cpu_s": _worked(resource.RUSAGE_SELF),
                }
            ).encode()
        )
        poll = select.poll()
        poll.register(self.control, select.POLLIN)
        own, recvmsg = self.control.fileno(), self.control.recvmsg
        while True:
            for handle, _ in poll.poll():
                if handle != own:
                    if handle in self.running:  # not yet reaped by an "end" of the same poll
                        poll.unregister(handle)
                        self._report_exit(handle)
                    continue
                try:
                    message, ancillary, _, _ = recvmsg(4096, MAX_ANCILLARY)
                except ConnectionResetError:  # the owner was killed while sending
                    message = b""
                if not message:
                    # What is left of a job ends with this process: it is pid 1, or the outer
                    # process kills the rest.
                    return
                kind, *order = message.split()
                if kind == b"start":
                    ((_, _, handles),) = ancillary
                    poll.register(
                        self._start(order, unpack(f"{len(handles) // 4}i", handles)), select.POLLIN
                    )
                else:
                    for watched in self.running:
                        poll.unregister(watched)
                    self._end()

    def _start(self, order: list[bytes], descriptors: Sequence[int]) -> int:
        role, style = order[0].decode(), order[1].decode()
        cpu_s, address_bytes, processes, files, seed = map(int, order[2:])
        if self.score is not None:
            # inherited by the fork: the kernel's OOM killer picks the program, never the zygote
            write(self.score, b"1000")
        pid = _fork()
        if pid == 0:
            try:
                if seed:
                    seeds.enter(seed)
                _become(
                    cpu_s=cpu_s,
                    address_bytes=address_bytes,
                    processes=processes,
                    files=files,
                    handles=descriptors,
                    uid=self.uid,
                    rules=self.rules,
                    seen=self.seen,
                    count=self.counts_processes,
                    folder=self.tmp,
                )
                self.run(style)
            finally:
                os._exit(70)  # before the ready message, so that the owner reports INFRA
        if self.score is not None:
            write(self.score, self.own_score)
        for handle in descriptors:
            close(handle)
        watched = os.pidfd_open(pid)
        self.running[watched] = (role, pid)
        return watched

    def _report_exit(self, watched: int) -> None:
        role, pid = self.running.pop(watched)
        os.close(watched)
        _, status, usage = os.wait4(pid, 0)
        self.control.send(b"exit %s %d %d" % (role.encode(), status, usage.ru_maxrss * 1024))

    def _end(self) -> None:
        self._kill_all()
        for watched in self.running:
            os.close(watched)
        self.running.clear()
        # Renew only where something was written. The folder's times alone do not show it: their
        # resolution is some milliseconds.
        if (
            self._scratch_state() != self.clean_scratch
            or os.listdir(self.folder)
            or self._is_marked()
        ):
            self._renew_scratch()
        if not self.seeded:
            levels.restart_pids()
        self.control.send(
            b"ended %.6f %.6f" % (_worked(resource.RUSAGE_CHILDREN), _worked(resource.RUSAGE_SELF))
        )

    def _kill_all(self) -> None:
        """Kill and reap every process that a job left. Each orphan is reparented to this process,
        which is pid 1 or a subreaper.
        """
        while True:
            if self.own_pids:
                _kill(-1, SIGKILL)
                if _waitpid(-1, None, process_tree.WALL) < 0:
                    return
            elif process_tree.descendants_ended():
                return

    def _scratch_state(self) -> tuple[int, ...]:
        status = os.stat(self.tmp)
        return (status.st_mtime_ns, status.st_ctime_ns, status.st_mode)

    def _is_marked(self) -> bool:
        """Whether the scratch folder has extended attributes."""
        try:
            return any(name.startswith("user.") for name in os.listxattr(self.folder))
        except OSError:  # a file system without attributes
            return False

    def _set_aside(self, scratch: str) -> None:
        """Set aside a scratch folder that takes too long to empty. It is removed when the worker
        closes.
        """
        os.rename(scratch, f"{scratch}-{time.monotonic_ns()}")
        os.mkdir(scratch)
        os.close(self.folder)
        self.folder = os.open(scratch, os.O_RDONLY | os.O_DIRECTORY)
        old, self.rules = self.rules, levels.file_rules(self.readable, scratch)
        if old is not None:
            os.close(old)

    def _renew_scratch(self) -> None:
        scratch = self.tmp
        if self.own_pids:
            os.close(self.folder)
            file_tree.unmount(scratch)
            file_tree.mount_scratch(scratch, self.shows_machine)
            self.folder = os.open(scratch, os.O_RDONLY | os.O_DIRECTORY)
        else:
            folders.empty(scratch, time.monotonic() + EMPTY_S)
            if os.listdir(scratch):
                self._set_aside(scratch)
            with contextlib.suppress(OSError):  # a file system without attributes
                for name in os.listxattr(scratch):
                    if name.startswith("user."):
                        os.removexattr(scratch, name)
            os.chmod(scratch, 0o777)
        self.clean_scratch = self._scratch_state()


def _worked(whose: int) -> float:
    usage = resource.getrusage(whose)
    return usage.ru_utime + usage.ru_stime


def _become(
    *,
    cpu_s: int,
    address_bytes: int,
    processes: int,
    files: int,
    handles: Sequence[int],
    uid: int | None,
    rules: int | None,
    seen: bool,
    count: bool,
    folder: str,
) -> None:
    """Turn the forked child into a process for a program: limits, no privileges, only the
    descriptors of its role.

    It uses plain names only: the first lookup of an attribute would write three pages.
    """
    setsid()
    at = 0
    for handle in handles:
        dup2(handle, at)
        at += 1
    setrlimit(RLIMIT_CPU, (cpu_s, cpu_s + 1))
    setrlimit(RLIMIT_AS, (address_bytes, address_bytes))
    setrlimit(RLIMIT_NOFILE, (files, files))
    levels.drop(uid, rules, seen)
    if count:
        setrlimit(RLIMIT_NPROC, (processes, processes))
    closerange(at, 1024)
    chdir(folder)
    # signal.signal would convert its result to an enum, which is ten times as slow.
    set_handler(SIGINT, default_int_handler)
    enable_gc()


def _oom_score() -> tuple[int | None, bytes]:
    """Open this process's oom_score_adj and return the descriptor and the current value; None where
    the value cannot be changed and restored.
    """
    try:
        handle = os.open("/proc/self/oom_score_adj", os.O_RDWR)
        own = os.read(handle, 16)
        os.write(handle, b"1000")
        os.write(handle, own)
    except OSError:
        return None, b""
    return handle, own


def _keep_low_descriptors_busy(control: socket.socket) -> socket.socket:
    """Move the control socket above descriptor 7. Programs get 0 to 7, so dup2 must never overwrite
    one of ours.
    """
    while (handle := os.open("/dev/null", os.O_RDWR)) < 8:
        pass
    os.close(handle)
    moved = control.dup()  # the lowest free number, above 7
    os.dup2(7, control.detach())
    return moved


@contextlib.contextmanager
def _without_stderr() -> Iterator[None]:
    """Drop messages of libraries that are imported: they miss files that are not shown here."""
    stderr, nothing = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 2)
    try:
        yield
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)
        os.close(nothing)


def main() -> None:
    config = json.loads(sys.argv[1])
    levels.die_with_parent(config["parent"])
    control = socket.socket(fileno=config["control"])
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # with a handler, signals could end even pid 1
    # The owner first puts this process into its cgroup, where there is one.
    counted = control.recv(1) == levels.COUNTED
    config["seen"] = not counted or config["level"] != "root"
    control = _keep_low_descriptors_busy(control)
    # Import the processes' entry point now: our files are out of sight later. Modules of other
    # roles are not imported: each of their pages would add to the cost of a fork.
    run = __import__(f"{program.__package__}.{config['runs']}", fromlist=["run"]).run
    if config["level"] == "bare":
        semaphores.refuse()
    try:
        in_force, listener = levels.enter(
            config["level"],
            config["packages"],
            counted=counted,
            watched=config["watched"],
            shows_machine=config["shows_machine"],
            shown=config["shown"],
        )
        if listener is not None:
            try:
                socket.send_fds(control, [b'{"listener": true}'], [listener])
            except OSError:
                os._exit(1)  # Nobody serves the listener: any call it handles would block forever.
            os.close(listener)
            if not (probing := _fork()):
                seccomp.probe()
            os.waitpid(probing, 0)
        if config["level"] == "bare":
            seccomp.refuse_messages()
    except OSError as error:
        control.send(
            json.dumps({"broken" if error.errno in SHORTAGES else "refused": str(error)}).encode()
        )
        sys.exit(1)
    sys.path[:] = [path for path in sys.path if path != ROOT] + [config["package_path"]]
    with _without_stderr():
        for name in [*PRELOADED.split(), *config["preload"]]:
            __import__(name)
    for name in {"random", "numpy.random"} & set(sys.modules):
        # Seed the generators: unseeded draws are then equal in each run, and verdicts do not
        # flicker.
        sys.modules[name].seed(0)
    with contextlib.suppress(OSError):
        time.tzset()
    Zygote(config, control, in_force, run).serve()


if __name__ == "__main__":
    main()
