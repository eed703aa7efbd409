"""What `ratchet audit` finds on tasks before they were fixed, and no longer after.

    python -m measurements.audit_history REPOSITORY BEFORE AFTER [--under FOLDER] [--most N]

REPOSITORY: a Git repository of task folders. BEFORE, AFTER: commits. Every task that differs
between them is read at both, and its files are checked; nothing is run. FOLDER: of the tasks.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path

from rewards.audit.findings import LAYOUT
from rewards.audit.folders import audit_folders

ALWAYS = "missing: solution/solve.sh"  # a set that publishes no solutions


def git(repository: Path, *words: str, text: bytes = b"") -> bytes:
    command = ["git", "-C", str(repository), "-c", "core.fsmonitor=", *words]
    return subprocess.run(command, input=text, capture_output=True, check=False).stdout


def trees(repository: Path, commit: str, under: str) -> dict[str, dict[str, str]]:
    """Return the blob of each plain file, by task and path."""
    tasks = defaultdict[str, dict[str, str]](dict)
    depth = len(Path(under).parts) + 1
    for line in git(repository, "ls-tree", "-r", commit, "--", under or ".").decode().splitlines():
        facts, _, path = line.partition("\t")
        mode, _, digest = facts.split()
        parts = path.strip('"').split("/")
        if mode.startswith("100") and ".." not in parts and len(parts) > depth:
            tasks["/".join(parts[:depth])]["/".join(parts[depth:])] = digest
    return dict(tasks)


def blobs(repository: Path, digests: set[str]) -> dict[str, bytes]:
    """Return the content of blobs; nothing of those that the copy of the repository lacks."""
    data = git(repository, "cat-file", "--batch", text="\n".join(digests).encode())
    contents, at = dict[str, bytes](), 0
    while at < len(data):
        end = data.index(b"\n", at)
        digest, *facts = data[at:end].decode().split()
        at = end + 1
        if facts[0] == "blob":
            size = int(facts[1])
            contents[digest] = data[at : at + size]
            at += size + 1
    return contents


def write(files: Mapping[str, str], contents: Mapping[str, bytes], folder: Path) -> None:
    for path, digest in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(contents.get(digest, b""))


def findings(folder: Path) -> dict[str, str]:
    found = dict[str, str]()
    for task in audit_folders(folder, None):
        for each in task.findings:
            evidence = "; ".join(part for part in each.evidence.split("; ") if part != ALWAYS)
            if each.status == "fail" and evidence:
                found[each.check_id] = evidence
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("repository", type=Path)
    parser.add_argument("before")
    parser.add_argument("after")
    parser.add_argument("--under", default="")
    parser.add_argument("--most", type=int, default=10_000)
    options = parser.parse_args()
    counts, examples = Counter[tuple[str, str]](), defaultdict[tuple[str, str], list[str]](list)
    sides = [
        trees(options.repository, commit, options.under)
        for commit in (options.before, options.after)
    ]
    both = sorted(sides[0].keys() & sides[1].keys())
    tasks = [task for task in both if sides[0][task] != sides[1][task]][: options.most]
    wanted = {digest for side in sides for task in tasks for digest in side[task].values()}
    contents, flagged = blobs(options.repository, wanted), Counter[str]()
    for task in tasks:
        seen = []
        for side in sides:
            with tempfile.TemporaryDirectory() as folder:
                write(side[task], contents, Path(folder) / "task")
                seen.append(findings(Path(folder) / "task"))
        old, new = seen
        flagged["before"] += bool(old)
        flagged["after"] += bool(new)
        flagged["repaired"] += bool(old.keys() - new.keys())
        for check in old.keys() | new.keys():
            state = ("before alone", "after alone", "both")[
                0 if check not in new else 1 if check not in old else 2
            ]
            counts[check, state] += 1
            examples[check, state].append(f"{task}: {old.get(check) or new.get(check)}"[:200])
    print(f"{len(tasks)} changed tasks: {dict(flagged)}; {LAYOUT} without {ALWAYS}")
    for (check, state), count in sorted(counts.items()):
        print(f"{count:5} {check} {state}; e.g. {examples[check, state][0]}")


if __name__ == "__main__":
    main()
