"""The commands that the pages of the documentation print, with the outputs printed under them.

A command is a line of an indented block, with its continuations. Each one runs as the tables here
say, or its reason not to is in NOT_RUN; their patterns match a command's begin. A fence under a
block, or under "`COMMAND` prints", is the output.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "docs" / "index.md",
    ROOT / "docs" / "tutorial.md",
    *sorted((ROOT / "docs" / "how-to").glob("*.md")),
]
# The first words of indented blocks that are no commands.
TEXTS = ("# Second largest", "skipped: ", "No cluster has run", "training:", "# team", "| secret")
FENCE = re.compile(r"^```(\w*)$")
PRINTS = re.compile(r"`([^`]+)` prints$")
NAMED = re.compile(r"^`([\w.]+\.\w+)`")  # a file whose content is the next fence
TITLE = re.compile(r"^# ([\w.]+\.\w+)$")  # the same as the fence's first line

TRAINING = "trains for minutes"
NOT_RUN = {
    r"make (tour|demo|test|ui|gpu|demo-pretrained)$": "test_tour, test_pipeline_run, test_ui",
    r"RATCHET_HOME=\.ratchet-pretrained ": "needs a training of an hour",
    r"ratchet (demo|ui) ": "test_pipeline_run, test_ui",
    r"(git clone|source) ": "the environment of this test",
    r"dagster (job|dev) ": "a complete run: test_pipeline_run, test_own_services",
    r"ratchet (ablate|adapt) ": f"{TRAINING}: test_ablation, test_adaptation",
    r"ratchet tune (?!--sweep)": f"{TRAINING}: test_tuning",
    r"ratchet reviewer (teach|reinforce) ": f"{TRAINING}: test_reviewer",
    r"ratchet reviewer records ": "needs the training above it: test_reviewer",
    r"ratchet solve problem.md --reviewer better": "needs the trained reviewer: test_reviewer",
    r"(\.venv/bin/)?ratchet gpu-acceptance ": "needs a GPU, or minutes: test_gpu_acceptance",
    r"(kubectl|docker|ray|helm|for pod in) ": "no cluster, no image: test_chart, test_replicas",
    r"(export RATCHET_NOTIFY|ratchet notify)": "needs a receiver: test_notify",
    r"ratchet .*team.yaml": "needs a bucket and a database: test_chart, test_apart",
    r"ratchet metrics --port": "serves until it is ended: test_bad_input",
    r"ratchet (backup|restore) s3:": "needs a bucket: test_backup_commands",
    r"ratchet serve .*engine=ray": "needs that Ray: test_replicas",
    r"python3(\.12)? ": "installs gigabytes: test_bundle",
    r"ratchet data add bigcodebench ": "needs the published file: test_bigcodebench",
    r"ratchet benchmarks install ": "installs a gigabyte",
    r"ratchet evaluate --benchmark bigcodebench ": "needs those packages: test_bigcodebench",
    r"ratchet .*(Qwen/|owner/name|package:llm|gguf:)": "needs the hub: test_hub, test_named_base",
    r"ratchet data add (mbpp|taco)$": "needs the hub: test_hub",
    r"ratchet evaluate .*(mbpp|humaneval)": "needs the published tasks: test_evaluate",
    r"ratchet data sample ": "needs a model of the reader: test_data_sample",
    r"ratchet prefer chain-": "needs completions that differ: test_prefer",
    r"ratchet jobs (stop|resume)$": "no training runs: test_job_control",
}
# What a reader puts in place of the page's words.
EDITS = {
    r"(?<=--base )(DIR_OR_HUB|/data/checkpoints/mine)": "base",
    r"/data/": "",
    r"s3://bucket/": "bucket/",
    r"\.ratchet/inbox/NAME": "base",
    r"(localhost|127\.0\.0\.1):8000": "127.0.0.1:$PORT",
    r"https://gateway:8000": "http://127.0.0.1:$PORT",
    r"…/choices\.jsonl": "choices.jsonl",
    r"0\.0\.0\.0": "127.0.0.1",
    r"&& wandb .*": "",
    r"simple/print_pages": "embedded/demonstrations/173c8f89fbb5",
    r"why-not chain-0002": "why-not chain-0001",
    r"deploy 4 5 6": "deploy 2 --strategy experiment",
    r"release status --watch": "release status",
    r"^curl": "curl --fail-with-body",
    r"(?<=audit )tasks/": "tasks.jsonl",
    r" > audit.json": "",
}
MORE = {
    r"ratchet train (?!--base)": "--show",  # prints what would be trained
    r"ratchet serve": "--port $PORT",
    r"ratchet (deploy|rollback)": "--yes",
    r"ratchet prefer (?!.*--result)": "--port $PORT",
}
EXITS = {
    r"(RATCHET_HOME=\S+ )?ratchet train --base": "2",  # nobody answers its question
    r"ratchet (solve|doctor|reward verify bad_reward)": "1",
}
# What the reader has done before.
BEFORE = {
    r"ratchet .*--endpoint http://127|curl .*gateway": "ratchet serve",
    r"curl .*/releases/": "ratchet deploy champion --strategy gradual",
    r"ratchet deploy \d": "ratchet release abort",
}
SERVERS = r"ratchet (serve|prefer (?!.*--result))"
# Lines with these words depend on the machine, the day or the model.
VARIES = re.compile(r"speed:|hash:|took|seconds|\d{4}-\d\d-\d\d|token=|minutes|plugins\.")
UNLIKE = {
    r"ratchet train": "of the training, not of its plan",
    r"ratchet (status|jobs list|registry|solve|doctor)": "of another home or machine",
    r"ratchet compare chain": "of a model that learned",
    r"ratchet deploy": "the traffic of another day",
    r"ratchet prefer": "after people chose",
    r"ratchet data (build|add)": "of other rows",
    r"ratchet audit": "of other tasks",
}


@dataclass(frozen=True)
class Block:
    """Consecutive commands, each with its line, and the expected output of all ("" for none)."""

    page: str
    commands: tuple[tuple[int, str], ...]
    output: str = ""


@dataclass(frozen=True)
class Page:
    """The blocks of a page, outputs of single commands, and the files that it prints."""

    blocks: tuple[Block, ...]
    outputs: dict[str, str]
    files: dict[str, str]


def read(path: Path) -> Page:
    name = str(path.relative_to(ROOT))
    blocks: list[Block] = []
    outputs: dict[str, str] = {}
    files: dict[str, str] = {}
    before: Block | None = None  # the block directly above
    text = ""  # the paragraph's last line above
    for number, lines, language in _parts(path.read_text(encoding="utf-8").splitlines()):
        if language is None:
            text, before = lines[-1].strip(), None
            first = lines[0].strip()
            if not lines[0].startswith("    ") or first.startswith(TEXTS):
                if first.startswith("# Second largest"):
                    files["problem.md"] = "\n".join(line[4:] for line in lines)
                text = " ".join(line.strip() for line in lines)
                continue
            before = Block(name, tuple(_commands(lines, number)))
            blocks.append(before)
            continue
        content = "\n".join(lines)
        if (title := TITLE.match(lines[0])) or (title := NAMED.match(text)):
            files[title.group(1)] = content + "\n"
        elif prints := PRINTS.search(text):
            outputs[prints.group(1)] = content
        elif before is not None:
            blocks[-1] = Block(name, before.commands, content)
        before = None
    return Page(tuple(blocks), outputs, files)


def _parts(lines: list[str]) -> Iterator[tuple[int, list[str], str | None]]:
    """Yield paragraphs, indented blocks (with their empty lines) and fences, each with its line.

    The last part is a fence's language, None outside fences.
    """
    number = 0
    while number < len(lines):
        start, line = number, lines[number]
        if fence := FENCE.match(line):
            end = next(i for i in range(number + 1, len(lines)) if lines[i].startswith("```"))
            yield start + 1, lines[start + 1 : end], fence.group(1)
            number = end + 1
        elif line.strip():
            indented = line.startswith("    ")
            while number < len(lines) and (
                (lines[number].strip() and lines[number].startswith("    ") == indented)
                or (indented and not lines[number].strip() and _again(lines, number))
            ):
                number += 1
            yield start + 1, lines[start:number], None
        else:
            number += 1


def _again(lines: list[str], number: int) -> bool:
    """Return whether the block continues after this empty line: only the file problem.md does."""
    following = lines[number + 1] if number + 1 < len(lines) else ""
    return following.startswith("    ## ")


def _commands(lines: list[str], number: int) -> Iterator[tuple[int, str]]:
    command, start = "", number
    for offset, line in enumerate(lines):
        start = start if command else number + offset
        command += ("\n" if command else "") + line.strip()
        if not command.endswith("\\") and _closed(command):
            yield start, command
            command = ""
    if command:
        yield start, command


def _closed(command: str) -> bool:
    """Return whether every quotation is closed."""
    try:
        shlex.split(command, comments=True)
    except ValueError:
        return False
    return True
