"""The data half of the graph, run by Dagster on a family small enough for a test: nothing is done twice, nothing bad gets through."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from rich.console import Console

from artifacts.hashing import hash_file
from artifacts.manifest import Manifest
from artifacts.store import Artifact
from assets.clean_problems import no_gated_problem, no_heldout_composition, no_secret
from assets.raw_problems import schema_holds
from assets.verified_problems import verified_tests_are_strong
from cli.data.limits import data_limits
from cli.data.show import diff, show
from cli.status import stale
from pipelines.definitions import defs
from problems.catalogue import add_source
from problems.dataset.evidence import CONTAMINATION, DUPLICATES, SUSPECTS, read_suspects
from problems.schema import Problem, read_parquet, write_parquet
from problems.sources import simple
from problems.sources.compositional import heldout_draw
from problems.verification import strength
from problems.verification.limits import SECONDS
from resources.run_context import Workshop
from resources.run_record import Chain

pytestmark = pytest.mark.slow
STAGES = (
    "raw_problems",
    "verified_problems",
    "augmented_problems",
    "synthetic_problems",
    "clean_problems",
)


def at(home: Path) -> Workshop:
    profile = home.with_suffix(".yaml")
    profile.write_text(
        "family: {demonstrations: 6, train: 4, validation: 2}\naugmentation: {kinds: [renamed]}",
        encoding="utf-8",
    )
    return Workshop(path=str(home), profile_name=str(profile))


@pytest.fixture(scope="module", autouse=True)
def few_simple_problems(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Three of those that are shipped; tests/problems/test_simple.py verifies all."""
    content, few = (
        json.loads(simple.FILE.read_text(encoding="utf-8")),
        tmp_path_factory.mktemp("simple") / simple.FILE.name,
    )
    few.write_text(json.dumps(content | {"problems": content["problems"][:3]}), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(simple, "FILE", few)
        yield


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    return at(tmp_path / "a home")


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("template") / "home"
    with dg.instance_for_test() as instance:
        assert refresh(at(home), instance).success
    return home


@pytest.fixture
def refreshed(template: Path, tmp_path: Path) -> Workshop:
    """A home whose stages are up to date."""
    shutil.copytree(template, tmp_path / "refreshed")
    return at(tmp_path / "refreshed")


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.instance_for_test() as made:
        yield made


def refresh(workshop: Workshop, instance: dg.DagsterInstance) -> dg.ExecuteInProcessResult:
    job = defs.resolve_job_def("refresh_data")
    return job.execute_in_process(
        instance=instance, resources={"workshop": workshop}, raise_on_error=False
    )


def made(workshop: Workshop) -> dict[str, Artifact]:
    return {name: workshop.store.require("datasets", name) for name in STAGES}


def test_a_second_refresh_finds_everything_and_changes_nothing(
    refreshed: Workshop, instance: dg.DagsterInstance
) -> None:
    first = made(refreshed)
    assert refresh(refreshed, instance).success
    assert made(refreshed) == first
    lines = (
        (refreshed.home.runs / "data" / "progress.jsonl").read_text(encoding="utf-8").splitlines()
    )
    assert [
        json.loads(line)["event"] for line in lines if json.loads(line)["event"] in ("end", "found")
    ] == ["end"] * len(STAGES) + ["found"] * len(STAGES)


def test_limits_that_were_chosen_make_another_version_of_the_data_and_can_be_taken_back(
    refreshed: Workshop, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, told = made(refreshed), Console(file=StringIO(), width=150)
    monkeypatch.setenv("RATCHET_HOME", str(refreshed.home.path))
    assert data_limits(True, None, told) == 0 and refresh(refreshed, instance).success
    second = made(refreshed)
    assert (
        second["raw_problems"] == first["raw_problems"]
        and "limits" in second["verified_problems"].manifest.inputs
    )
    assert second["verified_problems"].content_hash != first["verified_problems"].content_hash
    seconds = {
        problem.limits.cpu_s
        for problem in read_parquet(second["clean_problems"].path / "problems.parquet")
    }
    assert seconds == {SECONDS[0]} and stale(refreshed.home) == []
    (refreshed.home.path / "limits.json").unlink()
    assert (
        stale(refreshed.home) != []
        and refresh(refreshed, instance).success
        and made(refreshed) == first
    )


def test_two_homes_get_the_same_datasets(
    refreshed: Workshop, workshop: Workshop, instance: dg.DagsterInstance
) -> None:
    assert refresh(workshop, instance).success
    assert {n: a.content_hash for n, a in made(workshop).items()} == {
        n: a.content_hash for n, a in made(refreshed).items()
    }


def test_a_dataset_that_a_crash_left_half_written_is_made_again_alike(
    refreshed: Workshop, instance: dg.DagsterInstance
) -> None:
    clean = made(refreshed)["clean_problems"]
    (clean.path / "manifest.json").unlink()
    (clean.path / "problems.parquet").write_bytes(b"half")
    assert refresh(refreshed, instance).success
    again = made(refreshed)["clean_problems"]
    assert again.content_hash == clean.content_hash
    refreshed.store.verify(again)


def test_every_source_is_a_partition_and_a_bad_row_is_named_while_the_others_go_on(
    workshop: Workshop, instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    own = tmp_path / "own.jsonl"
    good: dict[str, Any] = {
        "id": "1",
        "statement": "Write f(x) that doubles x.",
        "style": "call",
        "entry_point": "f",
    }
    good |= {"tests": [{"args": [1], "expected": 2}], "solutions": ["def f(x):\n    return 2 * x"]}
    wrong = good | {
        "id": "2",
        "statement": "Write f(x) that triples x.",
        "solutions": ["def f(x):\n    return x"],
    }
    own.write_text(f"{json.dumps(good)}\n{json.dumps(wrong)}\n{{broken\n", encoding="utf-8")
    add_source(workshop.home.path, "own", own)
    assert refresh(workshop, instance).success
    assert set(instance.get_materialized_partitions(dg.AssetKey("problem_sources"))) == {
        "embedded",
        "simple",
        "own",
    }
    found = made(workshop)
    [rejected] = json.loads(
        (found["raw_problems"].path / "rejected.json").read_text(encoding="utf-8")
    )
    [removed] = json.loads(
        (found["verified_problems"].path / "removed.json").read_text(encoding="utf-8")
    )
    assert (
        rejected["row"] == "own.jsonl: line 3"
        and removed["problem_id"] == "own/2"
        and "a solution fails its tests" in removed["reason"]
    )
    assert "own/1" in {
        problem.problem_id
        for problem in read_parquet(found["clean_problems"].path / "problems.parquet")
    }


def test_a_copy_of_a_gated_problem_goes_with_the_evidence_beside_the_dataset(
    workshop: Workshop, instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    own = tmp_path / "own.jsonl"
    said = (
        "Write f(x) that gives the number x times two and then one more, for every whole number x."
    )
    row: dict[str, Any] = {
        "style": "call",
        "entry_point": "f",
        "tests": [{"args": [1], "expected": 3}],
        "solutions": ["def f(x):\n    return 2 * x + 1"],
    }
    rows = [
        row | {"id": "asked", "statement": said, "gated": True},
        row | {"id": "copied", "statement": f"Please: {said}"},
    ]
    rows.append(
        row
        | {
            "id": "secret",
            "statement": "Write f(x), of which jane.doe@mailbox.org knows the rest.",
            "tests": [{"args": [2], "expected": 5}],
        }
    )
    own.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    add_source(workshop.home.path, "own", own)
    assert refresh(workshop, instance).success
    clean = made(workshop)["clean_problems"]
    removed = {
        row["problem_id"]: row["reason"]
        for row in json.loads((clean.path / "removed.json").read_text(encoding="utf-8"))
    }
    of_copy = {
        name: reason for name, reason in removed.items() if name.startswith("augmented/")
    }  # made of it before the leak was seen
    gone = {
        "own/asked": "gated",
        "own/copied": "overlaps a gated problem",
        "own/secret": "secret or personal data",
    }
    assert removed == gone | dict.fromkeys(of_copy, "overlaps a gated problem")
    assert (
        made(workshop)["augmented_problems"].manifest.facts["not_parents"][
            "secret or personal data"
        ]
        == 1
    )  # nothing is made of it
    assert of_copy and not any(
        problem.parents
        for problem in read_parquet(clean.path / "problems.parquet")
        if "own/copied" in problem.parents
    )
    assert read_suspects(clean.path) == {"own": []}
    assert clean.manifest.facts["reports"] == {
        name: hash_file(clean.path / name) for name in (CONTAMINATION, DUPLICATES, SUSPECTS)
    }
    workshop.store.verify(clean)


def test_a_source_that_is_gone_fails_with_its_name_and_is_remembered(
    workshop: Workshop, instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    own = tmp_path / "own.jsonl"
    own.write_text("{}\n", encoding="utf-8")
    add_source(workshop.home.path, "own", own)
    own.unlink()
    assert not refresh(workshop, instance).success
    record = Chain(workshop.home.runs / "data").record
    assert record.failures == 1 and str(own) in record.error


def verdict(check: dg.AssetChecksDefinition, workshop: Workshop) -> dg.AssetCheckResult:
    found = check(workshop)
    assert isinstance(found, dg.AssetCheckResult)
    return found


def planted(refreshed: Workshop, problem: Problem) -> Artifact:
    """Clean problems with one more, as only a bug or a hand could leave them."""
    clean = made(refreshed)["clean_problems"]
    with refreshed.store.draft("datasets", "clean_problems") as folder:
        shutil.copytree(clean.path, folder, dirs_exist_ok=True)
        write_parquet(
            [*read_parquet(clean.path / "problems.parquet"), problem], folder / "problems.parquet"
        )
        return refreshed.store.publish(
            folder, Manifest(kind="datasets", name="clean_problems", key="planted", content_hash="")
        )


def test_a_gated_problem_among_clean_ones_is_caught_on_disk(refreshed: Workshop) -> None:
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
    refreshed: Workshop, name: str, extra: dict[str, Any]
) -> None:
    [problem] = heldout_draw(refreshed.profile.family, 1, 1)
    planted(
        refreshed,
        replace(problem, gated=False, split="train", source="own", problem_id=name, extra=extra),
    )
    found = verdict(no_gated_problem, refreshed)
    assert not found.passed and found.metadata["problem_ids"].value == [name]


def test_a_held_out_composition_among_clean_problems_is_caught_on_disk(refreshed: Workshop) -> None:
    [problem] = heldout_draw(refreshed.profile.family, 1, 1)
    planted(refreshed, replace(problem, split="train"))
    found = verdict(no_heldout_composition, refreshed)
    assert not found.passed and found.metadata["problem_ids"].value == [problem.problem_id]


def test_a_secret_among_clean_problems_is_caught_on_disk_and_not_repeated(
    refreshed: Workshop,
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


def test_weak_tests_among_verified_problems_are_caught_on_disk(refreshed: Workshop) -> None:
    verified = made(refreshed)["verified_problems"]
    one, other, *rows = strength.read(verified.path)[
        -3:
    ]  # simple problems: of compositions none is asked
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
        "untried"
    ].value == [other.problem_id]


def test_the_checks_pass_on_what_the_stages_make(refreshed: Workshop) -> None:
    checks = (
        schema_holds,
        verified_tests_are_strong,
        no_gated_problem,
        no_heldout_composition,
        no_secret,
    )
    assert all(verdict(check, refreshed).passed for check in checks)


def test_the_datasets_and_what_each_stage_kept_are_shown_whole_in_80_columns(
    refreshed: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RATCHET_HOME", str(refreshed.home.path))
    said = StringIO()
    assert show(None, None, Console(file=said, width=80)) == 0
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
    refreshed: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RATCHET_HOME", str(refreshed.home.path))
    [problem] = heldout_draw(refreshed.profile.family, 1, 1)
    planted(refreshed, replace(problem, source="own", problem_id="own/new"))
    [first, *_] = read_parquet(made(refreshed)["clean_problems"].path / "problems.parquet")
    said = StringIO()
    told = Console(file=said, width=150)
    assert diff("previous", "current", None, told) == 0 and show(first.problem_id, None, told) == 0
    assert all(
        words in said.getvalue()
        for words in ("1 added", "+ own/new", "removed", "what became of it", "static")
    )


def test_datasets_that_a_profile_keeps_elsewhere_are_shown_from_there(
    refreshed: Workshop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RATCHET_HOME", str(tmp_path / "empty"))
    (tmp_path / "elsewhere.yaml").write_text(
        f"storage: {{root: '{refreshed.home.path}'}}", encoding="utf-8"
    )
    said = StringIO()
    assert show(None, str(tmp_path / "elsewhere.yaml"), Console(file=said, width=80)) == 0
    assert made(refreshed)["clean_problems"].content_hash[:12] in said.getvalue()
