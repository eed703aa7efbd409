"""Cleaning of the public data sets: `python -m measurements.curation [--out FOLDER] [--read]`.

Cleans all problems that may be trained on (MBPP's part that is not gated, LeetCodeDataset's train
split, CodeContests' sample) against every gated set. Prints the funnel, leaks by source and
benchmark, suspects and groups of duplicates. `--read` also prints both texts of each leak and
duplicate, for review; `--out` writes the reports. The problems are not verified first.
`RATCHET_DATA` names the folder of the sets.
"""

from __future__ import annotations

import argparse
import os
import time
from collections import Counter
from pathlib import Path

from problems.cleaning.curation import Curation, curate, licence_counts, licences
from problems.dataset.evidence import evidence_of, write_evidence
from problems.funnel import Removed, Stage, funnel
from problems.registry import load

DATA = Path(
    os.environ.get("RATCHET_DATA", Path(__file__).resolve().parents[1].parent / "shared" / "data")
)
FOLDERS = {
    name: name
    for name in (
        "mbpp",
        "mbppplus",
        "humaneval",
        "humanevalplus",
        "leetcode",
        "bigcodebench",
        "codecontests",
    )
}
KNOWN = {"mbpp_sanitized": "mbpp", "leetcode_train": "leetcode"} | FOLDERS  # source and folder


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path)
    parser.add_argument("--read", action="store_true")
    arguments = parser.parse_args()
    problems = [
        problem for name, folder in KNOWN.items() for problem in load(name, DATA / folder).problems
    ]
    start = time.process_time()
    curated = curate(problems, [], Curation(processes=1))
    seconds = time.process_time() - start
    source = {problem.problem_id: problem.source for problem in problems}
    by_source = {
        name: [problem for problem in problems if problem.source == name]
        for name in sorted(set(source.values()))
    }
    removed: dict[str, list[Removed]] = {
        name: [row for row in curated.removed if source[row.problem_id] == name]
        for name in by_source
    }
    print(
        funnel(
            [
                Stage(name, len(by_source[name]), len(by_source[name]) - len(rows), tuple(rows))
                for name, rows in removed.items()
            ]
        )
    )
    print(
        f"\n{seconds:.0f} s of CPU, {len(problems)} problems, "
        f"{sum(problem.gated for problem in problems)} of them gated\n"
    )
    print(
        Counter(
            (
                source[overlap.problem_id],
                source[overlap.gated_id],
                overlap.kind,
                "leak" if overlap.leak else "suspicion",
            )
            for overlap in curated.overlaps
        )
    )
    print({name: len(tasks) for name, tasks in curated.suspects.items()})
    print(f"{len(curated.duplicates.groups)} groups, {curated.duplicates.capped} capped")
    print(licences(licence_counts(problems), Curation()))
    if arguments.read:
        text = {
            problem.problem_id: " ".join(problem.statement.split())[:300] for problem in problems
        }
        for overlap in curated.overlaps:
            if overlap.leak:
                print(
                    f"\nLEAK {overlap.problem_id} {overlap.gated_id}: {overlap.kind} "
                    f"{overlap.detail}\n  {text[overlap.problem_id]}\n  {text[overlap.gated_id]}"
                )
        for group in curated.duplicates.groups:
            for member in group.others:
                print(
                    f"\nTWIN {member.problem_id} {member.like}: {member.how}\n  "
                    f"{text[member.problem_id]}\n  {text[member.like]}"
                )
    if arguments.out:
        arguments.out.mkdir(parents=True, exist_ok=True)
        write_evidence(evidence_of(curated), arguments.out)


if __name__ == "__main__":
    main()
