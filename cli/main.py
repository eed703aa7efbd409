"""The entry point `ratchet`: run a command, and report errors and exit codes.

| exit code | meaning |
|---|---|
| 0 | done; also for a challenger that was refused |
| 1 | the answer is no, or the work failed: the output says why |
| 2 | wrong use, input, settings or files: one line on stderr says what to change |
| 3 | not now: another training uses the home, or the sandbox cannot run programs |
| 130 | interrupted by Ctrl-C |

Imports of third parties are inside functions, so that Ctrl-C is handled before they begin.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
from io import TextIOWrapper
from types import FrameType

FAILED, WRONG, BUSY, INTERRUPTED = 1, 2, 3, 130
PLACES = (PermissionError, IsADirectoryError, NotADirectoryError, FileNotFoundError)


def main() -> None:
    """Run the command line.

    An error that the user can fix is one line on stderr. Any other error is a bug and shows its
    traceback.
    """
    quiet_interrupts()
    import typer

    from cli.app.commands import app

    try:
        with_interrupts()
        for stream in (sys.stdout, sys.stderr):  # text that the terminal cannot show is escaped
            if isinstance(stream, TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")
        sys.exit(app(prog_name="ratchet", standalone_mode=False) or 0)
    except (KeyboardInterrupt, typer.Abort):
        sys.exit(INTERRUPTED)
    except Exception as error:
        if (reported := report(error)) is None:
            raise
        code, message = reported
        print(message, file=sys.stderr)
        sys.exit(code)
    finally:
        quiet_interrupts()  # the end of the process too


def quiet_interrupts() -> None:
    """End the process at Ctrl-C without a traceback; for imports, which a KeyboardInterrupt can
    leave half done. A background job of a shell script ignores Ctrl-C, and continues to.
    """
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, _end)


def with_interrupts() -> None:
    """Raise KeyboardInterrupt at Ctrl-C, so that a command can clean up."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _end(number: int, frame: FrameType | None) -> None:
    os._exit(INTERRUPTED)


def report(error: Exception) -> tuple[int, str] | None:
    """Return exit code and message of an error that the user can fix; None for a bug."""
    import typer

    usage_error = typer.BadParameter.__base__  # public under no name of its own
    if usage_error and isinstance(error, usage_error):
        return WRONG, _usage(error)
    if isinstance(error, ModuleNotFoundError):
        from artifacts.distribution import missing_package

        return (WRONG, f"error: {line}") if (line := missing_package(error)) else None
    from resources.lease import LeaseHeld, LeaseLost
    from sandbox.backends.local import IsolationError
    from sandbox.sandbox import SandboxError
    from verl_jobs.planner.shapes import DoesNotFit, UnknownShape

    if isinstance(error, LeaseHeld | LeaseLost | IsolationError | SandboxError):
        return BUSY, f"error: {error}"
    if isinstance(error, DoesNotFit) and not isinstance(error, UnknownShape):
        return FAILED, f"error: {error}"
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        from resources.home import Home

        return WRONG, f"error: {Home.from_environment().full()}"
    if isinstance(error, PLACES) and error.filename:
        fix = "check that it is what the command expects, and that this user may read and write it"
        return WRONG, f"error: {error.filename}: {error.strerror}: {fix}"
    # Errors of an object store are known by name: botocore is only installed with one.
    if type(error).__module__.startswith("botocore."):
        variables = "AWS_ENDPOINT_URL, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        return WRONG, f"error: object store: {error}: check {variables}"
    return (WRONG, f"error: {error}") if isinstance(error, user_errors()) else None


def _usage(error: Exception) -> str:
    """Return the message for a wrong option or argument; the help for a group without a command."""
    context = getattr(error, "ctx", None)
    message = str(error.format_message())  # type: ignore[attr-defined]
    if "\n" in message:  # the help itself
        return message
    command = context.command_path if context else "ratchet"
    see = " See" if message.endswith("?") else ": see"
    return f"error: {message.rstrip('.')}{see} `{command} --help`"


def user_errors() -> tuple[type[Exception], ...]:
    """Return the classes of errors that the user can fix."""
    from artifacts.integrity import CorruptArtifact
    from assets.verified_reward import UnverifiedReward
    from evaluation.generation.openai_client import MissingCompletions
    from evaluation.judging.reports import NotJudged
    from evaluation.promotion.rate import Incomparable
    from problems.columns import ProblemError
    from problems.synthesis.replies import EndpointDown
    from resources.config.load import ProfileError
    from resources.home import NotReady
    from resources.intake import NoCheckpoint
    from resources.ray.private import TrainingFailed
    from resources.registry.ledger import LedgerChanged, NothingToRollBack, Superseded
    from resources.registry.ledger_database import LedgerUnreachable
    from resources.registry.regressions import BadLine
    from resources.registry.releases import NoRelease, ReleaseMoved
    from resources.registry.versions import UnknownVersion
    from rewards.own import RewardFileError
    from sandbox.discovery import BrokenEntry
    from verl_jobs.config.references import PluginError
    from verl_jobs.planner.preflight import CannotTrain
    from verl_jobs.planner.shapes import UnknownShape
    from verl_jobs.sft.start import UnfitStart

    configuration = (NotReady, ProfileError, ProblemError, PluginError, RewardFileError)
    training = (
        UnverifiedReward,
        NoCheckpoint,
        UnfitStart,
        CannotTrain,
        UnknownShape,
        TrainingFailed,
    )
    evaluation = (MissingCompletions, EndpointDown, NotJudged, Incomparable)
    registry = (NothingToRollBack, Superseded, LedgerUnreachable, UnknownVersion)
    release = (NoRelease, ReleaseMoved)
    changed = (CorruptArtifact, LedgerChanged, BadLine, BrokenEntry)
    return (
        FileNotFoundError,
        *configuration,
        *training,
        *evaluation,
        *registry,
        *release,
        *changed,
    )


if __name__ == "__main__":
    main()
