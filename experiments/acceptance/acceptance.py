"""Run the acceptance, and write its page and its JSON."""

from __future__ import annotations

import _thread
import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from artifacts.atomic import write_atomic
from artifacts.manifest import code_version, hardware, package_versions
from experiments.acceptance.checks import PARTS, measures, results
from experiments.acceptance.drive import Events, Watcher, run_pipeline, settings_of
from experiments.acceptance.evidence import collect
from pipelines.launch import INTERRUPTED
from pipelines.process import restore_sigint
from pipelines.run_worker import BUSY
from problems.catalogue import add_source
from resources.doctor import findings
from resources.finding import Finding
from resources.settings import Settings

Device = Literal["cuda", "cpu"]
TEMPLATE = Path(__file__).with_name("page.html.jinja")
MACHINE = "machine.json"
COLOURS = {"passed": "green", "failed": "red", "not applicable": "dim", "not run": "yellow"}
PROBLEMS = "everyday"  # the shipped source that a named base learns from


def accept(device: Device, folder: Path, console: Console, base: str = "", until: str = "") -> int:
    """Run what is left of the acceptance; write `acceptance.json` and `index.html` after each part.

    base: a checkpoint to train instead of the tiny model. until: the part to stop after; a later
    call continues. Return 0 if no check failed, 1 if one did, 3 if another process trains in the
    folder's home, 130 for Ctrl-C. Raises NotReady and other errors of a pipeline run that cannot
    start.
    """
    restore_sigint()  # a shell's background job ignores it, and `until` stops by it
    folder.mkdir(parents=True, exist_ok=True)
    settings = settings_of(device, folder, base)
    events = Events(folder)
    events.note("started")
    found = _found(folder, settings)
    events.note("checked")
    ends = {part.ends: part.name for part in PARTS}
    last = next((part.ends for part in PARTS if part.name == until), "")

    def on_event(event: str) -> None:
        _write(device, folder, settings, found)
        if event in ends:
            console.print(f"{ends[event]}: done after {events.seen[event]:.0f} s")
        if event == last:
            _thread.interrupt_main()

    code = 0
    if not any(finding.blocks for finding in found) and last not in events.seen:
        if base:
            settings.home.make()
            add_source(settings.home.path, PROBLEMS, None)
        with Watcher(folder, settings.home, events, on_event) as watcher:
            code = run_pipeline(settings, watcher, console)
    content = _write(device, folder, settings, found)
    if code == BUSY or (code == INTERRUPTED and last not in events.seen):
        return code
    _show(content, console)
    console.print(f"Page: {folder / 'index.html'}", soft_wrap=True, highlight=False)
    return 0 if content["passed"] or (last and last in events.seen) else 1


def _write(
    device: Device, folder: Path, settings: Settings, found: Sequence[Finding]
) -> dict[str, Any]:
    """Judge what is on disk, write it, and return it."""
    evidence = collect(device, folder, settings, found)
    parts = tuple(results(evidence))
    content = {
        "device": device,
        "passed": all(part.state in ("passed", "not applicable") for part in parts),
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "model": settings.profile.base or "a tiny model trained from scratch",
        "engine": evidence.training.engine,
        "parts": [asdict(part) for part in parts],
        "measures": [asdict(measure) for measure in measures(evidence)],
        "machine": _machine(found),
        "kill": evidence.kill,
        "attempts": evidence.attempts,
        "training": evidence.training.model_dump(mode="json"),
    }
    write_atomic(folder / "acceptance.json", json.dumps(content, indent=1, ensure_ascii=False))
    write_atomic(folder / "index.html", render(content))
    return content


def render(content: dict[str, Any]) -> str:
    """Return the page of an `acceptance.json`."""
    import jinja2

    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    return environment.from_string(TEMPLATE.read_text(encoding="utf-8")).render(content)


def _found(folder: Path, settings: Settings) -> list[Finding]:
    """Return the doctor's findings from before the run: during it, memory is taken."""
    path = folder / MACHINE
    if path.exists():
        found = [Finding(**each) for each in json.loads(path.read_text(encoding="utf-8"))]
        if not any(finding.blocks for finding in found):
            return found
    found = list(findings(settings.home, settings.profile))
    write_atomic(path, json.dumps([asdict(finding) for finding in found], indent=1))
    return found


def _machine(found: Sequence[Finding]) -> dict[str, str]:
    """Return the machine by part: code and package versions, hardware, and the findings."""
    packages = ", ".join(f"{name} {version}" for name, version in package_versions().items())
    parts = ", ".join(f"{name} {value}" for name, value in hardware().items())
    return {"code": code_version(), "hardware": parts, "all packages": packages} | {
        finding.part: finding.found for finding in found
    }


def _show(content: dict[str, Any], console: Console) -> None:
    table = Table("part", "check", "", "figures", "limit", box=None, header_style="dim")
    for part in content["parts"]:
        colour = COLOURS[part["state"]]
        seconds = "" if part["seconds"] is None else f"{part['seconds']:.0f} s"
        table.add_row(part["name"], "", f"[{colour}]{part['state']}[/]", seconds, "")
        for check in part["checks"]:
            state = f"[{COLOURS[check['state']]}]{check['state']}[/]"
            table.add_row(
                "", check["name"], state, escape(check["figures"]), escape(check["limit"])
            )
    console.print(table)
