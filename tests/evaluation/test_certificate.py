"""A certificate is recomputed without Ratchet, and a changed one is refused by name."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evaluation.promotion import check_certificate
from evaluation.promotion.certificate import certificate
from evaluation.promotion.check_certificate import faults, hash_of
from evaluation.promotion.gate import decide
from evaluation.promotion.policy import Policy
from evaluation.scorecard import Scorecard
from tests.children import python
from tests.evaluation.scorecards import BETTER, OLD, card, counted

POLICY = Policy(benchmark="heldout")
OTHER = [each.model_copy(update={"benchmark": "other"}) for each in (OLD, BETTER)]


def made(before: Scorecard = OLD, after: Scorecard = BETTER) -> dict[str, Any]:
    decision = decide(before, after, POLICY, others=[(OTHER[0], OTHER[1])])
    sides = (
        {"heldout": each, "other": other}
        for each, other in zip((before, after), OTHER, strict=True)
    )
    data: dict[str, Any] = json.loads(json.dumps(certificate(decision, *sides)))
    return data


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (OLD, BETTER),
        (OLD, OLD.model_copy(update={"checkpoint_hash": "x"})),
        (counted("a", [3, 5, 0, 10, 2]), counted("b", [4, 5, 1, 10, 9])),
        (
            card("a", [0, 1, 0, 0]).model_copy(),
            card("b", [1, 1, 1, 0]).model_copy(),
        ),
    ],
    ids=["promoted", "equal", "several completions", "few tasks"],
)
def test_the_checks_reproduce_what_the_gate_computed(before: Scorecard, after: Scorecard) -> None:
    assert not list(faults(made(before, after)))


def test_related_tasks_are_recomputed_as_clusters() -> None:
    sides = [
        each.model_copy(
            update={
                "samples": tuple(
                    sample.model_copy(update={"cluster": f"c{at // 3}"})
                    for at, sample in enumerate(each.samples)
                )
            }
        )
        for each in (OLD, BETTER)
    ]
    result = made(*sides)
    assert result["comparisons"][0]["test"] == "cluster_sign_flips"
    assert not list(faults(result))


def verdict(data: dict[str, Any]) -> None:
    data["comparisons"][0]["challenger"]["t399"] = [1, 1]


def level(data: dict[str, Any]) -> None:
    data["level"] = 0.2


def weights(data: dict[str, Any]) -> None:
    data["challenger"]["content_hash"] = "other weights"


@pytest.mark.parametrize(
    ("change", "name"),
    [(verdict, "comparisons"), (level, "level"), (weights, "challenger")],
)
def test_a_changed_part_is_refused_by_name(change: Callable[..., None], name: str) -> None:
    data = made()
    change(data)
    assert f"{name}: its hash is not the one that the certificate lists" in list(faults(data))


@pytest.mark.parametrize(
    ("change", "name"), [(verdict, "heldout: score of the challenger"), (level, "level")]
)
def test_new_hashes_do_not_hide_a_change(change: Callable[..., None], name: str) -> None:
    data = made()
    published = hash_of(data["hashes"])
    change(data)
    data["hashes"] = {key: hash_of(part) for key, part in data.items() if key != "hashes"}
    found = [line.partition(":")[0] for line in faults(data, published)]
    assert "certificate" in found
    assert any(line.startswith(name) for line in faults(data))


def test_a_refused_challenger_cannot_be_called_promoted() -> None:
    data = copy.deepcopy(made(OLD, OLD.model_copy(update={"checkpoint_hash": "x"})))
    data["kind"] = "promote"
    assert any(line.startswith("kind: promote") for line in faults(data))


def test_the_script_needs_nothing_of_ratchet(tmp_path: Path) -> None:
    file, script = tmp_path / "certificate.json", tmp_path / "check.py"
    file.write_text(json.dumps(made()))
    script.write_bytes(Path(str(check_certificate.__file__)).read_bytes())
    result = python("-I", "-S", script, file, cwd=tmp_path)
    assert result.stdout.startswith("promote holds: "), result.stderr
    assert len(script.read_text().splitlines()) <= 200


@pytest.mark.parametrize("content", ["", "not JSON"])
def test_another_file_is_refused_by_name(tmp_path: Path, content: str) -> None:
    file = tmp_path / "other.json"
    if content:
        file.write_text(content)
    command = [sys.executable, str(check_certificate.__file__), str(file)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert "other.json: " in result.stderr
    assert "Traceback" not in result.stderr


def test_a_certificate_of_another_form_is_refused_with_its_faults(tmp_path: Path) -> None:
    data = copy.deepcopy(made())
    verdicts = data["comparisons"][0]["challenger"]
    verdicts[next(iter(verdicts))] = [0, 0]
    file = tmp_path / "other.json"
    file.write_text(json.dumps(data))
    command = [sys.executable, str(check_certificate.__file__), str(file)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert "comparisons: its hash" in result.stdout
    assert "not of a certificate's form" in result.stdout
    assert not result.stderr
