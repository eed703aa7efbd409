"""The data stages' checks detect bad rows on disk, and the commands show the stages' datasets."""

from __future__ import annotations

import re
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
from assets.clean_problems import no_gated_problem, no_heldout_function, no_secret
from assets.raw_problems import schema_holds
from assets.verified_problems import verified_tests_are_strong
from cli.data.show import diff, show
from problems.embedded.heldout import heldout_tasks
from problems.schema import Problem, read_parquet, write_parquet
from problems.verification import strength
from resources.run_context import RunContext
from resources.settings import Settings
from tests.assets.data_stages import datasets

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("few_simple_problems")]


def run_check(check: dg.AssetChecksDefinition, run_context: RunContext) -> dg.AssetCheckResult:
    result = check(run_context)
    assert isinstance(result, dg.AssetCheckResult)
    return result


def add_clean_problem(refreshed: RunContext, problem: Problem) -> Artifact:
    """Publish the clean dataset with one more problem, as a bug or a manual change would."""
    clean = datasets(refreshed)["clean_problems"]
    with refreshed.store.draft("datasets", "clean_problems") as folder:
        shutil.copytree(clean.path, folder, dirs_exist_ok=True)
        write_parquet(
            [*read_parquet(clean.path / "problems.parquet"), problem], folder / "problems.parquet"
        )
        return refreshed.store.publish(
            folder, Manifest(kind="datasets", name="clean_problems", key="planted", content_hash="")
        )


def test_a_stored_gated_problem_fails_its_check(refreshed: RunContext) -> None:
    [problem] = heldout_tasks(refreshed.profile.family, 0, 1)
    add_clean_problem(refreshed, replace(problem, gated=True, source="own", problem_id="own/gated"))
    result = run_check(no_gated_problem, refreshed)
    assert not result.passed
    assert result.metadata["problem_ids"].value == ["own/gated"]


@pytest.mark.parametrize(
    ("name", "extra"),
    [
        ("own/mbpp_11", {}),
        ("own/1", {"task_id": "HumanEval/3"}),
        ("own/2", {"parents": ["mbppplus/602"]}),
    ],
)
def test_a_gated_task_marked_as_open_fails_its_check(
    refreshed: RunContext, name: str, extra: dict[str, Any]
) -> None:
    [problem] = heldout_tasks(refreshed.profile.family, 0, 1)
    add_clean_problem(
        refreshed,
        replace(problem, gated=False, split="train", source="own", problem_id=name, extra=extra),
    )
    result = run_check(no_gated_problem, refreshed)
    assert not result.passed
    assert result.metadata["problem_ids"].value == [name]


def test_a_stored_held_out_composition_fails_its_check(
    refreshed: RunContext,
) -> None:
    [problem] = heldout_tasks(refreshed.profile.family, 0, 1)
    add_clean_problem(refreshed, replace(problem, split="train"))
    result = run_check(no_heldout_function, refreshed)
    assert not result.passed
    assert result.metadata["problem_ids"].value == [problem.problem_id]


def test_a_stored_secret_fails_its_check_without_being_repeated(
    refreshed: RunContext,
) -> None:
    [problem] = heldout_tasks(refreshed.profile.family, 0, 1)
    add_clean_problem(
        refreshed,
        replace(problem, statement=f"{problem.statement} Ask jane.roe@company.io.", split="train"),
    )
    result = run_check(no_secret, refreshed)
    [entry] = result.metadata["problems"].value  # type: ignore[misc, union-attr]
    assert not result.passed
    assert problem.problem_id in str(entry)
    assert "statement" in str(entry)
    assert "jane.roe" not in str(entry)


def test_stored_weak_tests_fail_their_check(refreshed: RunContext) -> None:
    verified = datasets(refreshed)["verified_problems"]
    # The last rows are simple problems; compositions need no strength.
    weak, unmeasured, *rows = strength.read(verified.path)[-3:]
    with refreshed.store.draft("datasets", "verified_problems") as folder:
        shutil.copytree(verified.path, folder, dirs_exist_ok=True)
        strength.write(
            [*rows, replace(weak, killed=0, survivors=("operator, line 2: Add becomes Sub",))],
            folder,
        )
        refreshed.store.publish(
            folder,
            Manifest(kind="datasets", name="verified_problems", key="planted", content_hash=""),
        )
    result = run_check(verified_tests_are_strong, refreshed)
    assert not result.passed
    assert result.metadata["count"].value == 2
    assert weak.problem_id in str(result.metadata["weak"].value)
    assert result.metadata["unmeasured"].value == [unmeasured.problem_id]


def test_the_checks_pass_on_the_datasets_of_the_stages(refreshed: RunContext) -> None:
    checks = (
        schema_holds,
        verified_tests_are_strong,
        no_gated_problem,
        no_heldout_function,
        no_secret,
    )
    assert all(run_check(check, refreshed).passed for check in checks)


def test_the_counts_of_each_stage_fit_80_columns(
    refreshed: RunContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RATCHET_HOME", str(refreshed.home.path))
    output = StringIO()
    assert show(None, Settings.read(), Console(file=output, width=80)) == 0
    lines = output.getvalue().splitlines()
    verified = datasets(refreshed)["verified_problems"].manifest.facts
    removed = verified["came_in"] - verified["kept"]
    counts = rf"verified_problems +{verified['came_in']}\b.*\b{verified['kept']}\b.*\b{removed}\b"
    assert any(re.match(counts, line) for line in lines)
    assert max(map(len, lines)) <= 80


def test_data_diff_and_show_explain_a_change(
    refreshed: RunContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RATCHET_HOME", str(refreshed.home.path))
    [problem] = heldout_tasks(refreshed.profile.family, 0, 1)
    add_clean_problem(refreshed, replace(problem, source="own", problem_id="own/new"))
    [first, *_] = read_parquet(datasets(refreshed)["clean_problems"].path / "problems.parquet")
    output = StringIO()
    console = Console(file=output, width=150)
    assert diff("previous", "current", Settings.read(), console) == 0
    assert show(first.problem_id, Settings.read(), console) == 0
    assert all(
        words in output.getvalue() for words in ("1 added", "+ own/new", "removed", "static")
    )


def test_datasets_in_another_storage_root_are_shown(
    refreshed: RunContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RATCHET_HOME", str(tmp_path / "empty"))
    (tmp_path / "elsewhere.yaml").write_text(
        f"storage: {{root: '{refreshed.home.path}'}}", encoding="utf-8"
    )
    output = StringIO()
    assert (
        show(None, Settings.read(str(tmp_path / "elsewhere.yaml")), Console(file=output, width=80))
        == 0
    )
    assert datasets(refreshed)["clean_problems"].content_hash[:12] in output.getvalue()
