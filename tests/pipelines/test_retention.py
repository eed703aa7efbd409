"""What stays on disk after decisions: everything that something names, and no more."""

from __future__ import annotations

import threading
from datetime import timedelta
from pathlib import Path

import dagster as dg
import pytest

from artifacts.hashing import REMOVED
from artifacts.integrity import CorruptArtifact
from artifacts.manifest import Manifest
from artifacts.passport import ManifestIndex
from artifacts.store import Artifact
from pipelines.history import forget_runs
from resources import lease, retention
from resources.config.infrastructure import Storage
from resources.home import Home, NotReady
from resources.model_version import ModelVersion
from resources.progress import Progress
from resources.registry.ledger import LedgerChanged, NothingToRollBack
from resources.registry.releases import Releases
from resources.retention import Removal, collect, collecting
from resources.run_context import KEY
from resources.run_record import PipelineRun, Timing, records
from resources.verification import verify_records
from tests.artifacts.object_store import object_store
from tests.lease_holder import holding
from tests.open_runs import damage_record, open_test_run
from tests.pipelines.home_builder import HomeBuilder

TRAINED = {"checkpoint": Timing(seconds=1.0, reused=False, finished_at="")}


def removed(home_builder: HomeBuilder, *, dry_run: bool = False, **rule: int) -> list[Removal]:
    context = home_builder.run_context
    with collecting(context.home):
        return collect(
            context.home, context.store, context.ledger, Storage(**rule), dry_run=dry_run
        )


def names(removals: list[Removal]) -> list[str]:
    return sorted(Path(each.path).parent.name for each in removals)


def dataset(home_builder: HomeBuilder, text: str) -> Artifact:
    store = home_builder.run_context.store
    with store.draft("datasets", "clean_problems") as folder:
        (folder / "rows").write_text(text, encoding="utf-8")
        manifest = Manifest(kind="datasets", name="clean_problems", key=text, content_hash="")
        return store.publish(folder, manifest)


def trained(home: Home, run: str, *steps: int) -> Path:
    """Return a training's folder with sealed saves and a candidate for each step."""
    folder = home.runs / run / "training" / "1f0c"
    for step in steps:
        for path in (
            folder / "saves" / f"global_step_{step}" / "whole",
            folder / "candidates" / f"step-{step:06d}" / "model.safetensors",
        ):
            path.parent.mkdir(parents=True)
            path.write_text("{}", encoding="utf-8")
    return folder


def test_champion_and_previous_stay_whole(home_builder: HomeBuilder) -> None:
    first, second, third = map(home_builder.promoted, ("a", "b", "c"))
    assert names(removed(home_builder)) == ["a"]
    for kept in (second, third):
        home_builder.run_context.store.verify(kept)
    assert [path.name for path in first.path.iterdir()] == [REMOVED]


def test_the_version_that_a_rollback_took_back_stays(home_builder: HomeBuilder) -> None:
    for name in "abcd":
        home_builder.promoted(name)
    home_builder.run_context.ledger.rollback("undo")
    assert names(removed(home_builder)) == ["a"]


def test_both_versions_of_an_open_release_stay(home_builder: HomeBuilder) -> None:
    for name in "abcd":
        home_builder.promoted(name)
    context = home_builder.run_context
    releases = Releases(context.ledger.place)
    releases.open(1, 2, {}, why="test")
    assert removed(home_builder) == []


def test_a_removed_checkpoint_keeps_its_place_in_the_provenance(home_builder: HomeBuilder) -> None:
    first = home_builder.promoted("a")
    home_builder.promoted("b")
    home_builder.promoted("c")
    removed(home_builder)
    store = home_builder.run_context.store
    assert first.content_hash in ManifestIndex.of(store).by_content
    with pytest.raises(FileNotFoundError, match="only its manifest is left"):
        store.require("checkpoints", "a")


def refused(home_builder: HomeBuilder, name: str) -> None:
    """Add a challenger that the gate refused."""
    checkpoint, ledger = home_builder.checkpoint(name), home_builder.run_context.ledger
    champion = ledger.champion()
    ledger.append(
        "refuse",
        checkpoint=name,
        checkpoint_hash=checkpoint.content_hash,
        path=str(checkpoint.path),
        decision={"reasons": []},
        run_id=name,
        against=champion.checkpoint_hash if champion else None,
    )
    record = open_test_run(home_builder.run_context.home.runs, name)
    record.change(state="done", decision="refuse", stages=TRAINED)


def test_a_refused_challenger_stays_until_the_next_run(home_builder: HomeBuilder) -> None:
    home_builder.promoted("a")
    refused(home_builder, "b")
    assert removed(home_builder) == []
    refused(home_builder, "c")
    assert names(removed(home_builder)) == ["b"]


def test_an_open_run_keeps_its_checkpoint_and_its_saves(home_builder: HomeBuilder) -> None:
    home = home_builder.run_context.home
    home_builder.checkpoint("chain-0001")
    open_test_run(home.runs, "chain-0001")
    trained(home, "chain-0001", 5, 10)
    for name in "abc":
        home_builder.promoted(name)
    assert names(removed(home_builder)) == ["a"]


@pytest.mark.parametrize("keep", [0, 1])
def test_an_ended_training_keeps_as_many_saves_as_the_profile_says(
    home_builder: HomeBuilder, keep: int
) -> None:
    home_builder.promoted("chain-0001")
    folder = trained(home_builder.run_context.home, "chain-0001", 5, 10)
    removed(home_builder, keep_saves=keep)
    assert [path.name for path in (folder / "saves").iterdir()] == ["global_step_10"][:keep]
    assert not (folder / "candidates").exists()


def test_a_dataset_stays_while_a_kept_checkpoint_was_made_from_it(
    home_builder: HomeBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    used, _, present = (dataset(home_builder, text) for text in ("1", "2", "3"))
    store = home_builder.run_context.store
    with store.draft("checkpoints", "chain-0001") as folder:
        (folder / "model.safetensors").write_text("w", encoding="utf-8")
        inputs = {"clean_problems": used.content_hash}
        manifest = Manifest(
            kind="checkpoints", name="chain-0001", key="k", content_hash="", inputs=inputs
        )
        store.publish(folder, manifest)
    scored = open_test_run(home_builder.run_context.home.runs, "chain-0001", kind="evaluation")
    scored.change(state="done")
    assert removed(home_builder) == []  # it may be about to become the current one
    monkeypatch.setattr(retention, "SETTLED", timedelta(seconds=-1))
    assert [Path(each.path).name for each in removed(home_builder)] == ["2"]
    store.verify(used)
    store.verify(present)


def test_a_dry_run_removes_nothing(home_builder: HomeBuilder) -> None:
    artifacts = [home_builder.promoted(name) for name in "abc"]
    assert names(removed(home_builder, dry_run=True)) == ["a"]
    for artifact in artifacts:
        home_builder.run_context.store.verify(artifact)


def test_a_killed_removal_is_completed(home_builder: HomeBuilder) -> None:
    first, *_ = [home_builder.promoted(name) for name in "abc"]
    home_builder.run_context.store.retire(first.manifest)  # and here it was killed
    assert (first.path / "model.safetensors").exists()
    removed(home_builder)
    assert [path.name for path in first.path.iterdir()] == [REMOVED]


def test_a_datasets_own_list_of_removed_rows_is_no_sign_of_a_removal(
    home_builder: HomeBuilder,
) -> None:
    store = home_builder.run_context.store
    with store.draft("datasets", "raw_problems") as folder:
        (folder / "removed.json").write_text("{}", encoding="utf-8")
        (folder / "rows").write_text("1", encoding="utf-8")
        manifest = Manifest(kind="datasets", name="raw_problems", key="k", content_hash="")
        rows = store.publish(folder, manifest)
    removed(home_builder)
    store.verify(rows)


def test_nothing_is_removed_while_a_record_cannot_be_read(home_builder: HomeBuilder) -> None:
    artifacts = [home_builder.promoted(name) for name in "abc"]
    damage_record(home_builder.run_context.home.runs, "b")
    with pytest.raises(CorruptArtifact, match=r"records\.db: b"):
        removed(home_builder)
    for artifact in artifacts:
        home_builder.run_context.store.verify(artifact)


def test_artifacts_at_a_url_stay(home_builder: HomeBuilder) -> None:
    for name in "abc":
        home_builder.promoted(name)
    context = home_builder.run_context
    with object_store("models") as url, collecting(context.home):
        store = context.home.store(url)
        with store.draft("checkpoints", "a") as folder:
            (folder / "model.safetensors").write_text("a", encoding="utf-8")
            store.publish(folder, Manifest(kind="checkpoints", name="a", key="a", content_hash=""))
        assert collect(context.home, store, context.ledger, Storage()) == []


def test_nothing_is_removed_while_another_process_trains(home_builder: HomeBuilder) -> None:
    home = home_builder.run_context.home
    with holding(home.lease), pytest.raises(lease.LeaseHeld):
        removed(home_builder)


def test_one_collection_runs_at_a_time(home_builder: HomeBuilder) -> None:
    with (
        collecting(home_builder.run_context.home),
        pytest.raises(NotReady, match="another clean-up or backup"),
    ):
        removed(home_builder)


def test_no_decision_is_recorded_while_versions_are_chosen(home_builder: HomeBuilder) -> None:
    for name in "abc":
        home_builder.promoted(name)
    ledger, done = home_builder.run_context.ledger, threading.Event()

    def roll_back() -> None:
        ledger.rollback("undo")
        done.set()

    thread = threading.Thread(target=roll_back)
    with ledger.held() as entries:
        thread.start()
        assert not done.wait(0.5)
        assert entries[-1].checkpoint == "c"
    thread.join()
    assert ledger.history()[-1].checkpoint == "b"


def test_a_ledger_without_a_runs_decision_removes_nothing(home_builder: HomeBuilder) -> None:
    for name in "abc":
        home_builder.promoted(name)
    open_test_run(home_builder.run_context.home.runs, "d").change(state="done", decision="promote")
    with pytest.raises(LedgerChanged, match="the decision on d is missing"):
        removed(home_builder)


def test_the_newest_runs_profile_keeps_more_versions(
    home_builder: HomeBuilder, tmp_path: Path
) -> None:
    (tmp_path / "mine.yaml").write_text("extends: small\nstorage: {keep_versions: 3}\n")
    for name in "abc":
        home_builder.promoted(name)
    runs = home_builder.run_context.home.runs
    open_test_run(runs, "d", profile=str(tmp_path / "mine.yaml")).change(state="done")
    assert removed(home_builder) == []


def test_a_checkpoint_without_a_decision_stays(home_builder: HomeBuilder) -> None:
    for name in ("mine-1", "mine-2"):
        home_builder.checkpoint(name)
        open_test_run(home_builder.run_context.home.runs, name, kind="evaluation").change(
            state="done"
        )
    assert removed(home_builder) == []


def test_a_checkpoint_that_is_being_scored_stays(home_builder: HomeBuilder) -> None:
    for name in "abc":
        home_builder.promoted(name)
    scored = PipelineRun(home_builder.run_context.home.runs, "a")
    Progress(scored.progress_file, "benchmark_scores").write("begin")
    assert removed(home_builder) == []


def test_a_validation_that_failed_long_ago_pins_no_champion(home_builder: HomeBuilder) -> None:
    first, *_ = [home_builder.promoted(name) for name in "abc"]
    champion = ModelVersion.of_artifact("a", first)
    open_test_run(
        home_builder.run_context.home.runs, "validation-a", kind="validation", champion=champion
    )
    assert names(removed(home_builder)) == ["a"]


def test_an_open_study_keeps_every_dataset(
    home_builder: HomeBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "SETTLED", timedelta(seconds=-1))
    dataset(home_builder, "1")
    dataset(home_builder, "2")
    study = open_test_run(home_builder.run_context.home.runs, "study", kind="study")
    assert removed(home_builder) == []
    study.change(state="done")
    assert [Path(each.path).name for each in removed(home_builder)] == ["1"]


def test_a_failure_after_the_decision_reopens_no_run(home_builder: HomeBuilder) -> None:
    run = open_test_run(home_builder.run_context.home.runs, "chain-0001")
    run.change(state="done", decision="promote")
    assert run.fail("the disk is away").state == "done"


@dg.asset
def numbers() -> int:
    return 1


@pytest.fixture
def instance(tmp_path: Path) -> dg.DagsterInstance:
    return dg.DagsterInstance.local_temp(str(tmp_path))


def test_old_runs_of_dagster_are_forgotten_with_their_files(
    instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    first, second = (dg.materialize([numbers], instance=instance).run_id for _ in range(2))
    assert forget_runs(instance, 1) == []
    assert forget_runs(instance, 0) == [first]
    assert [run.run_id for run in instance.get_runs()] == [second]
    assert not list(tmp_path.rglob(f"*{first}*"))


def test_a_retraining_of_a_sensor_is_not_forgotten(instance: dg.DagsterInstance) -> None:
    asked = dg.materialize([numbers], instance=instance, tags={KEY: "problems-1"}).run_id
    dg.materialize([numbers], instance=instance)
    assert forget_runs(instance, 0) == []
    assert instance.get_run_by_id(asked)


def test_a_removed_version_is_not_restored(home_builder: HomeBuilder) -> None:
    for name in "abc":
        home_builder.promoted(name)
    removed(home_builder)
    ledger = home_builder.run_context.ledger
    with pytest.raises(NothingToRollBack, match=r"weights of version 1 .* were removed"):
        ledger.rollback("undo", to=1)
    assert ledger.champion() == ledger.history()[-1]


def test_the_home_is_still_whole_after_a_removal(home_builder: HomeBuilder) -> None:
    for name in "abc":
        home_builder.promoted(name)
    removed(home_builder)
    verify_records(home_builder.run_context.home.path)
    assert home_builder.run_context.store.verify_all() > 0
    assert len(records(home_builder.run_context.home.runs)) == 3
