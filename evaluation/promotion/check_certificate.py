"""Recompute a certificate of promotion: `python3 check_certificate.py FILE [HASH]`.

Standard library only, and nothing of Ratchet: it may be copied to any machine. It recomputes the
hashes, the scores and the paired test from the verdicts, and the decision from the test and its
level. HASH: the certificate's hash as its maker published it.
Exits 0 if all of it holds. Otherwise each line names what does not, and it exits 1. It exits 2 if
the file cannot be read as JSON.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Iterator
from math import comb, gcd, isclose, sqrt
from pathlib import Path
from statistics import NormalDist
from typing import Any

FORMAT = 1
GRIDS = (2520, 60, 10)  # steps of a difference per unit; see evaluation/statistics/sign_flips.py
MAX_WORK = 300_000_000


def hash_of(data: Any) -> str:
    """Return the sha256 of canonical JSON."""
    text = json.dumps(data, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def faults(certificate: dict[str, Any], published: str = "") -> Iterator[str]:
    """Yield what does not hold, one line each."""
    if certificate.get("format") != FORMAT:
        yield f"format: {certificate.get('format')!r} is not {FORMAT}: use the script next to it"
        return
    parts = {name: part for name, part in certificate.items() if name != "hashes"}
    hashes = certificate["hashes"]
    for name in sorted(parts.keys() | hashes.keys()):
        if name not in parts or hash_of(parts[name]) != hashes.get(name):
            yield f"{name}: its hash is not the one that the certificate lists"
    if published and hash_of(hashes) != published:
        yield f"certificate: its hash is {hash_of(hashes)}, the published one is {published}"
    for comparison in certificate["comparisons"]:
        for line in _comparison_faults(comparison):
            yield f"{comparison['benchmark']}: {line}"
    yield from _decision_faults(certificate)


def _comparison_faults(stated: dict[str, Any]) -> Iterator[str]:
    before, after = stated["champion"], stated["challenger"]
    if before.keys() != after.keys():
        yield "verdicts: champion and challenger have other tasks"
        return
    tasks = sorted(before)
    was, now = ([_pass_at(each[task], stated["k"]) for task in tasks] for each in (before, after))
    differences = [b - a for a, b in zip(was, now, strict=True)]
    single = stated["k"] == 1 and all(
        n == 1 and c in (0, 1) for each in (before, after) for c, n in each.values()
    )
    clusters = [stated["clusters"].get(task, f"task {task}") for task in tasks]
    related = len(set(clusters)) < len(clusters)
    test = "cluster_sign_flips" if related else "mcnemar" if single else "sign_flips"
    if stated["test"] != test:
        yield f"test: {stated['test']} is stated, these verdicts need {test}"
    won, lost = sum(d > 0 for d in differences), sum(d < 0 for d in differences)
    better, worse = _mcnemar(won, lost) if test == "mcnemar" else _sign_flips(differences, clusters)
    figures = {
        "score of the champion": ("before", sum(was) / len(was)),
        "score of the challenger": ("after", sum(now) / len(now)),
        "p-value": ("p_better", better),
        "p-value of worse": ("p_worse", worse),
    }
    if stated["margin"] and test == "mcnemar":
        normal = 1 - NormalDist().cdf(_tango(won, lost, len(tasks), -stated["margin"]))
        figures["p-value of a fall"] = ("p_not_worse", normal)
    for name, (key, value) in figures.items():
        if not isclose(stated[key], value, rel_tol=1e-9, abs_tol=1e-12):
            yield f"{name}: {stated[key]} is stated, the verdicts give {value}"


def _decision_faults(certificate: dict[str, Any]) -> Iterator[str]:
    kind, level, policy = (certificate[name] for name in ("kind", "level", "policy"))
    if kind == "install":
        if certificate["comparisons"]:
            yield "kind: install, but a champion was compared"
        return
    if not 0 < level <= policy["alpha"]:
        yield f"level: {level} is not in (0, {policy['alpha']}], the policy's alpha"
    failed = [check["name"] for check in certificate["checks"] if not check["passed"]]
    if (kind == "promote") == bool(failed):
        yield f"kind: {kind} with the failed checks {', '.join(failed) or '(none)'}"
    gate = certificate["comparisons"][0]
    if kind == "promote" and not gate["p_better"] <= level:
        yield f"kind: promote, but the p-value {gate['p_better']} is above the level {level}"


def _pass_at(count: tuple[float, int], k: int) -> float:
    """Return the share of draws of k completions in which one passes: Chen et al. 2021, eq. 1."""
    passed, drawn = count
    if passed != int(passed):
        return passed / drawn
    return 1 - comb(drawn - int(passed), k) / comb(drawn, k)


def _mcnemar(won: int, lost: int) -> tuple[float, float]:
    changed = won + lost
    return tuple(  # type: ignore[return-value]
        sum(comb(changed, i) for i in range(least, changed + 1)) / 2**changed
        for least in (won, lost)
    )


def _sign_flips(differences: list[float], clusters: list[str]) -> tuple[float, float]:
    """Return the chances that random signs of the clusters' sums give at least, at most the sum."""
    sums: dict[str, float] = {}
    for name, difference in zip(clusters, differences, strict=True):
        sums[name] = sums.get(name, 0.0) + difference
    for grid in GRIDS:
        steps = [step for value in sums.values() if (step := round(grid * value))]
        common = gcd(*steps) or 1
        steps = [step // common for step in steps]
        if len(steps) * sum(map(abs, steps)) <= MAX_WORK:
            break
    if not steps:
        return 1.0, 1.0
    chances = {0: 1}  # of each sum of the steps whose sign is positive, times 2 ** len(steps)
    for step in map(abs, steps):
        longer = dict(chances)
        for total, ways in chances.items():
            longer[total + step] = longer.get(total + step, 0) + ways
        chances = longer
    seen, all_ways = sum(step for step in steps if step > 0), 2 ** len(steps)
    better = sum(ways for total, ways in chances.items() if total >= seen)
    worse = sum(ways for total, ways in chances.items() if total <= seen)
    return better / all_ways, worse / all_ways


def _tango(won: int, lost: int, tasks: int, difference: float) -> float:
    """Return Tango's statistic (1998, Statistics in Medicine 17:891) of this true difference."""
    a, b = 2 * tasks, -won - lost + (2 * tasks - won + lost) * difference
    c = -lost * difference * (1 - difference)
    losing = (sqrt(max(0.0, b * b - 4 * a * c)) - b) / (2 * a)
    variance = tasks * (2 * losing + difference * (1 - difference))
    away = won - lost - tasks * difference
    return 0.0 if away == 0 else away / sqrt(variance) if variance > 0 else float("inf") * away


def main() -> int:
    parser = argparse.ArgumentParser(description="Recompute a certificate of promotion.")
    parser.add_argument("file", type=Path)
    parser.add_argument("hash", nargs="?", default="", help="its hash, as its maker published it")
    options = parser.parse_args()
    try:
        certificate = json.loads(options.file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        parser.error(f"{options.file}: {error}")
    found: list[str] = []
    try:
        for fault in faults(certificate, options.hash):
            found.append(fault)  # what was found before it cannot be read is shown, too
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        found.append(f"{options.file}: not of a certificate's form ({error!r})")
    print("\n".join(found) or f"{certificate['kind']} holds: {hash_of(certificate['hashes'])}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
