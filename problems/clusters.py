"""Clusters: problems that are related, so that a model tends to solve all of them or none.

In: a problem. Out: the name of its cluster. Statistical tests permute clusters as a whole
(evaluation/statistics/sign_flips.py).
"""

from __future__ import annotations

import re

from problems.schema import Problem

NAMED = ("cluster", "composition", "repository")  # keys of `extra`, first one first
DATED = ("livecodebench", "leetcode")  # sources with the day of the contest
PLATFORMS = ("leetcode", "codeforces", "atcoder")
CODEFORCES = re.compile(r"(\d+)_[a-z]")


def cluster_of(problem: Problem) -> str:
    """Return the cluster of a problem; "" if it has none.

    A file of your own can have a column `cluster` or `repository`. The embedded family's cluster is
    the composition. A contest is a cluster: of Codeforces by its number, of LiveCodeBench and
    LeetCode by platform and day.
    """
    if named := next((problem.extra[key] for key in NAMED if problem.extra.get(key)), None):
        return str(named)
    key = problem.problem_id.partition("/")[2]
    if problem.source == "codecontests" and (contest := CODEFORCES.match(key)):
        return f"codeforces {contest[1]}"
    if problem.source in DATED and (day := str(problem.extra.get("date") or "")[:10]):
        platform = next((tag for tag in problem.tags if tag in PLATFORMS), "")
        return f"{platform} {day}".strip()
    return ""
