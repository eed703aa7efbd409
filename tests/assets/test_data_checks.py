"""The data stages' checks find bad rows on disk, and the commands show what the stages made."""

from __future__ import annotations

import shutil
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from rich.console import Console

from artifacts.manifest import Manifest
from artifacts.store import Artifact
from assets.clean_problems import no_gated_problem, no_heldout_composition, no_secret
from assets.raw_problems import schema_holds
from assets.verified_problems import verified_tests_are_strong
from cli.data.show import diff, show
from problems.schema import Problem, read_parquet, write_parquet
from problems.sources.compositional import heldout_draw
from problems.verification import strength
from resources.run_context import RunContext
from resources.settings import Settings
from tests.assets.data_stages import made

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("few_simple_problems")]


def verdict(check: dg.AssetChecksDefinition, run_context: RunContext) -> dg.AssetCheckResult:
    found = check(run_context)
    assert isinstance(found, dg.AssetCheckResult)
    return found


def planted(refreshed: RunContext, problem: Problem) -> Artifact:
    """Add a problem to the clean ones, as only a bug or a manual change could."""
    clean = made(refreshed)["clean_problems"]
    with refreshed.store.draft("datasets", "clean_problems") as folder:
        shutil.copytree(clean.path, folder, dirs_exist_ok=True)
        write_parquet(
            [*read_parquet(clean.path / "problems.parquet"), problem], folder / "problems.parquet"
        )
        return refreshed.store.publish(
            folder, Manifest(kind="datasets", name="clean_problems", key="planted", content_hash="")
        )


def test_a_gated_problem_among_clean_ones_is_caught_on_disk(refreshed: RunContext) -> None:
    [problem] = heldout_draw(refreshed.profile.family, 1, 1)
    planted(refreshed, replace(problem, gated=True, source="own", problem_id="own/gated"))
    found = verdict(no_gated_problem, refreshed)
    assert not found.passed and found.metadata["problem_ids"].value == ["own/gated"]


@pytest.mark.parametrize(
    ("name", "extra"),
    [
        ("own/mbpp_11", {}),
        ("own/1", {"task_id": "HumanEval/3"}),
        ("own/2", {"parents": ["mbppplus/602"]}),
    ],
)
def test_a_gated_task_that_claims_to_be_open_is_caught_on_disk(
    refreshed: RunContext, name: str, extra: dict[str, Any]
) -> None:
    [problem] = heldout_draw(refreshed.profile.family, 1, 1)
    planted(
        refreshed,
        replace(problem, gated=False, split="train", source="own", problem_id=name, extra=extra),
    )
    found = verdict(no_gated_problem, refreshed)
    assert not found.passed and found.metadata["problem_ids"].value == [name]


def test_a_held_out_composition_among_clean_problems_is_caught_on_disk(
    refreshed: RunContext,
) -> None:
    [problem] = heldout_draw(refreshed.profile.family, 1, 1)
    planted(refreshed, replace(problem, split="train"))
    found = verdict(no_heldout_composition, refreshed)
    assert not found.passed and found.metadata["problem_ids"].value == [problem.problem_id]


def test_a_secret_among_clean_problems_is_caught_on_disk_and_not_repeated(
    refreshed: RunContext,
) -> None:
    [problem] = heldout_draw(refreshed.profile.family, 1, 1)
    planted(
        refreshed,
        replace(problem, statement=f"{problem.statement} Ask jane.roe@company.io.", split="train"),
    )
    found = verdict(no_secret, refreshed)
    assert not found.passed and found.metadata["problems"].value == [
        f"{problem.problem_id}: an e-mail address in statement"
    ]


def test_weak_tests_among_verified_problems_are_caught_on_disk(refreshed: RunContext) -> None:
    verified = made(refreshed)["verified_problems"]
    # Simple problems: compositions need no strength.
    one, other, *rows = strength.read(verified.path)[-3:]
    with refreshed.store.draft("datasets", "verified_problems") as folder:
        shutil.copytree(verified.path, folder, dirs_exist_ok=True)
        strength.write(
            [*rows, replace(one, killed=0, survivors=("operator, line 2: Add becomes Sub",))],
            folder,
        )
        refreshed.store.publish(
            folder,
            Manifest(kind="datasets", name="verified_problems", key="planted", content_hash=""),
        )
    found = verdict(verified_tests_are_strong, refreshed)
    assert not found.passed and found.metadata["count"].value == 2
    assert one.problem_id in str(found.metadata["weak"].value) and found.metadata[
        "unmeasured"
    ].value == [other.problem_id]


def test_the_checks_pass_on_what_the_stages_make(refreshed: RunContext) -> None:
    checks = (
        schema_holds,
        verified_tests_are_strong,
        no_gated_problem,
        no_heldout_composition,
        no_secret,
    )
    assert all(verdict(check, refreshed).passed for check in checks)


def test_the_datasets_and_what_each_stage_kept_are_shown_whole_in_80_columns(
    refreshed: RunContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RATCHET_HOME", str(refreshed.home.path))
    said = StringIO()
    assert show(None, Settings.read(), Console(file=said, width=80)) == 0
    lines, verified = (
        said.getvalue().splitlines(),
        made(refreshed)["verified_problems"].manifest.facts,
    )
    removed = verified["came_in"] - verified["kept"]
    assert (
        f"verified_problems  {verified['came_in']} in, {verified['kept']} out, {removed} removed"
        in lines
        and max(map(len, lines)) <= 80
    )


def test_the_commands_show_what_a_change_did_and_what_became_of_a_problem(
    refreshed: RunContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RATCHET_HOME", str(refreshed.home.path))
    [problem] = heldout_draw(refreshed.profile.family, 1, 1)
    planted(refreshed, replace(problem, source="own", problem_id="own/new"))
    [first, *_] = read_parquet(made(refreshed)["clean_problems"].path / "problems.parquet")
    said = StringIO()
    told = Console(file=said, width=150)
    assert (
        diff("previous", "current", Settings.read(), told) == 0
        and show(first.problem_id, Settings.read(), told) == 0
    )
    assert all(
        words in said.getvalue()
        for words in ("1 added", "+ own/new", "removed", "what became of it", "static")
    )


def test_datasets_that_a_profile_keeps_elsewhere_are_shown_from_there(
    refreshed: RunContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RATCHET_HOME", str(tmp_path / "empty"))
    (tmp_path / "elsewhere.yaml").write_text(
        f"storage: {{root: '{refreshed.home.path}'}}", encoding="utf-8"
    )
    said = StringIO()
    assert (
        show(None, Settings.read(str(tmp_path / "elsewhere.yaml")), Console(file=said, width=80))
        == 0
    )
    assert made(refreshed)["clean_problems"].content_hash[:12] in said.getvalue()
