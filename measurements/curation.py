"""The real sets through the cleaning: `python -m measurements.curation [--out FOLDER] [--read]`.

All that may be trained on together (MBPP's part that is not gated, LeetCodeDataset's train split,
CodeContests' sample), against every gated set beside them. Prints the funnel, leaks by source and
benchmark, suspects, groups; `--read` every find with both texts, to be judged by eye; `--out` the
reports. Problems are taken as they are, without verification. `RATCHET_DATA` names the folder of
the sets.
"""

from __future__ import annotations

import argparse
import os
import time
from collections import Counter
from pathlib import Path

from problems.cleaning.curation import Curation, curate, licences
from problems.dataset.evidence import write_evidence
from problems.funnel import Removed, Stage, funnel
from problems.sources.registry import load

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
    given = parser.parse_args()
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
    went: dict[str, list[Removed]] = {
        name: [row for row in curated.removed if source[row.problem_id] == name]
        for name in by_source
    }
    print(
        funnel(
            [
                Stage(name, len(by_source[name]), len(by_source[name]) - len(rows), tuple(rows))
                for name, rows in went.items()
            ]
        )
    )
    print(
        f"\n{seconds:.0f} s of CPU, {len(problems)} problems, "
        f"{sum(problem.gated for problem in problems)} of them gated\n"
    )
    print(
        Counter(
            (source[o.problem_id], source[o.gated_id], o.kind, "leak" if o.leak else "suspicion")
            for o in curated.overlaps
        )
    )
    print({name: len(tasks) for name, tasks in curated.suspects.items()})
    print(f"{len(curated.duplicates.groups)} groups, {curated.duplicates.capped} capped")
    print(licences(problems, Curation()))
    if given.read:
        text = {
            problem.problem_id: " ".join(problem.statement.split())[:300] for problem in problems
        }
        for o in curated.overlaps:
            if o.leak:
                print(
                    f"\nLEAK {o.problem_id} {o.gated_id}: {o.kind} {o.detail}\n  "
                    f"{text[o.problem_id]}\n  {text[o.gated_id]}"
                )
        for group in curated.duplicates.groups:
            for member in group.others:
                print(
                    f"\nTWIN {member.problem_id} {member.like}: {member.how}\n  "
                    f"{text[member.problem_id]}\n  {text[member.like]}"
                )
    if given.out:
        given.out.mkdir(parents=True, exist_ok=True)
        write_evidence(curated, given.out)


if __name__ == "__main__":
    main()
