"""Rollback, explain, why-not, provenance and card, on a home with decisions of the real gate."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import yaml
from rich.console import Console

from artifacts.manifest import Manifest
from cli.card import card
from cli.explain import explain
from cli.provenance import provenance
from cli.rollback import rollback
from cli.why_not import why_not
from evaluation.promotion.gate import decide
from evaluation.scorecard import Scorecard
from pipelines.definitions import defs
from pipelines.sensors.mlflow import mlflow_follows
from problems.dataset.evidence import SUSPECTS
from problems.embedded.compositional import generate
from problems.embedded.settings import FamilyConfig
from problems.schema import write_parquet
from resources.home import NotReady
from resources.registry.ledger import NothingToRollBack
from resources.registry.versions import UnknownVersion
from resources.run_context import RunContext
from resources.settings import Settings
from tests.children import python
from tests.cli.conftest import Called
from tests.pipelines.home_builder import HomeBuilder, scorecard_of

pytestmark = pytest.mark.timeout(600)  # MLflow creates its tables, slowly on a busy machine


@pytest.fixture
def home(home_builder: HomeBuilder, monkeypatch: pytest.MonkeyPatch) -> HomeBuilder:
    """Return a home where the gate installed `old`, promoted `better`, and refused `alike`."""
    monkeypatch.setenv("RATCHET_HOME", str(home_builder.run_context.home.path))
    monkeypatch.setenv("RATCHET_PROFILE", "small")
    before: Scorecard | None = None
    for name, solved in (("old", 100), ("better", 150), ("alike", 152)):
        checkpoint = home_builder.checkpoint(name)
        scored = scorecard_of(checkpoint, solved, 400, "v1")
        home_builder.scored(
            name,
            "evaluation",
            {"challenger": scored} | ({"champion": before} if before else {}),
            None,
        )
        decision = decide(before, scored)
        home_builder.run_context.ledger.append(
            decision.kind,
            checkpoint=name,
            checkpoint_hash=checkpoint.content_hash,
            path=str(checkpoint.path),
            decision=decision.model_dump(mode="json"),
            run_id=name,
            against=before.checkpoint_hash if before else None,
        )
        before = scored if decision.promoted else before
    return home_builder


def output_of(command: Callable[..., int], *arguments: Any) -> tuple[int, str]:
    text = StringIO()
    return command(*arguments, Settings.read(), Console(file=text, width=200)), text.getvalue()


@pytest.mark.parametrize("name", ["champion", "2", "v2", "better"])
def test_a_promotion_is_explained_with_reasons_and_numbers(home: HomeBuilder, name: str) -> None:
    code, text = output_of(explain, name)
    assert code == 0
    assert "version 2 (better): promoted" in text
    assert "champion now" in text
    assert "p < 0.0001" in text
    assert "+12.5 (" in text
    champion, challenger = [line for line in text.splitlines() if "●" in line]
    assert champion.endswith("25.0 %")
    assert challenger.endswith("37.5 %")
    assert champion.index("●") < challenger.index("●")


def test_a_refusal_states_the_required_wins(home: HomeBuilder) -> None:
    code, text = output_of(why_not, "challenger")
    assert code == 0
    assert "version 3 (alike): not promoted" in text
    assert re.search(r"\b0 tasks of heldout.* 8 .* 2\b", text)


def test_explain_and_why_not_refer_to_each_other(home: HomeBuilder) -> None:
    code, text = output_of(explain, "3")
    assert code == 1
    assert "version 3 (alike)" in text
    assert re.search(r"\b0 tasks of heldout.* 8 ", text)
    code, text = output_of(why_not, "2")
    assert code == 1
    assert "version 2 (better)" in text


def test_an_unknown_version_names_the_known_ones(home: HomeBuilder) -> None:
    with pytest.raises(UnknownVersion, match=r"'9'.*3 \(alike\), 2 \(better\), 1 \(old\)"):
        output_of(explain, "9")


@pytest.mark.slow
def test_a_rollback_is_reported_and_explained(home: HomeBuilder) -> None:
    code, text = output_of(rollback, None, "it wrote poems")
    assert code == 0
    assert re.search(r"version 2 \(better\).*version 1 \(old\).*\nit wrote poems\n", text)
    assert "`ratchet rollback --to 2` makes version 2 (better) champion again" in text
    code, text = output_of(explain, "2")
    assert code == 0
    assert "entry 4" in text
    assert "not champion now" in text
    with pytest.raises(NothingToRollBack, match="first champion"):
        output_of(rollback, None, "")
    assert output_of(rollback, 2, "a mistake")[0] == 0
    assert "promoted on" in output_of(explain, "2")[1]
    assert "champion now" in output_of(explain, "2")[1]
    assert not (home.run_context.home.path / "rollback.json").exists()


def test_provenance_names_checkpoint_and_scores(home: HomeBuilder, tmp_path: Path) -> None:
    code, text = output_of(provenance, "champion", False, None)
    assert code == 0
    assert text.startswith("version 2 (better)")
    assert "checkpoints/better" in text
    assert "scores/better" in text
    _, graph = output_of(provenance, "better", True, None)
    assert {node["name"] for node in json.loads(graph)["nodes"]} == {"version 2 (better)", "better"}
    assert output_of(provenance, "2", False, tmp_path / "graph.mmd")[0] == 0
    assert "flowchart" in (tmp_path / "graph.mmd").read_text()


def test_the_hub_can_read_the_model_card(home: HomeBuilder, tmp_path: Path) -> None:
    from huggingface_hub import ModelCard

    with home.run_context.store.draft("scores", "better--heldout") as folder:
        checkpoint = home.run_context.store.require("checkpoints", "better")
        scored = scorecard_of(checkpoint, 150, 400, "v1")
        scored.write(folder / "scorecard.json")
        manifest = home.run_context.store.require("scores", "better").manifest
        inputs = {"checkpoint": checkpoint.content_hash, "benchmark": "v1"}
        home.run_context.store.publish(
            folder,
            manifest.model_copy(
                update={
                    "name": "better--heldout",
                    "inputs": inputs,
                    "content_hash": scored.content_hash,
                }
            ),
        )
    assert output_of(card, "champion", tmp_path, False)[0] == 0
    read = ModelCard.load(tmp_path / "README.md")
    [result] = read.data.eval_results or []
    assert (result.metric_value, result.dataset_type, result.dataset_revision) == (
        0.375,
        "heldout",
        "v1",
    )
    assert (
        yaml.safe_load(read.content.split("---")[1])["checkpoint_hash"]
        == home.run_context.store.require("checkpoints", "better").content_hash
    )
    assert "p < 0.0001" in read.text


@pytest.mark.parametrize(
    ("out", "written"),
    [("a/card.md", "a/card.md"), ("folder", "folder/README.md"), ("v1.0", "v1.0/README.md")],
)
def test_the_card_is_written_to_a_file_or_a_folder(
    home: HomeBuilder, tmp_path: Path, out: str, written: str
) -> None:
    assert output_of(card, "champion", tmp_path / out, False)[0] == 0
    assert (tmp_path / written).is_file()


def test_a_card_of_another_kind_is_refused(home: HomeBuilder, tmp_path: Path) -> None:
    for name in ("card.html", "present"):
        (tmp_path / "present").touch()
        with pytest.raises(NotReady, match=rf"--out: .*{name} is no folder"):
            output_of(card, "champion", tmp_path / name, False)
    assert not (tmp_path / "card.html").exists()


def score_new_checkpoint(home: HomeBuilder) -> None:
    """Add a better checkpoint `new`, its scores and the champion's, and the data of the gate."""
    new = home.checkpoint("new")
    old = home.run_context.store.require("checkpoints", "better")
    # The version is new, because the gate requires fresh tasks.
    cards = {
        "challenger": scorecard_of(new, 240, 400, "v2"),
        "champion": scorecard_of(old, 150, 400, "v2"),
    }
    home.scored("new", "evaluation", cards, old)
    # The gate reads suspect tasks and lost tasks from this dataset.
    with home.run_context.store.draft("datasets", "clean_problems") as folder:
        write_parquet(
            generate(FamilyConfig(demonstrations=4, train=4, validation=2)),
            folder / "problems.parquet",
        )
        (folder / SUSPECTS).write_text("{}", encoding="utf-8")
        home.run_context.store.publish(
            folder,
            Manifest(kind="datasets", name="clean_problems", key="clean_problems", content_hash=""),
        )


@pytest.mark.slow
def test_promote_runs_from_dagsters_command_line(home: HomeBuilder) -> None:
    """As a script or a cron job starts it: the newest scored checkpoint is the challenger."""
    score_new_checkpoint(home)
    (dagster_home := home.run_context.home.path / "dagster").mkdir(exist_ok=True)
    command = [sys.executable, "-m", "dagster", "job", "execute", "-m", "pipelines.definitions"]
    ended = subprocess.run(
        [*command, "-j", "promote"],
        env=os.environ | {"DAGSTER_HOME": str(dagster_home)},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    champion = home.run_context.ledger.champion()
    assert ended.returncode == 0, ended.stderr[-3000:]
    assert champion
    assert champion.checkpoint == "new"


@pytest.mark.slow
def test_a_promotion_over_changed_weights_ends_with_exit_code_2(home: HomeBuilder) -> None:
    score_new_checkpoint(home)
    weights = home.run_context.store.require("checkpoints", "new").path / "model.safetensors"
    weights.write_text("old", encoding="utf-8")
    (dagster_home := home.run_context.home.path / "dagster").mkdir(exist_ok=True)
    ended = python(
        "-m",
        "pipelines.run_worker",
        "promote",
        "new",
        str(os.getpid()),
        env={"DAGSTER_HOME": str(dagster_home)},
    )
    errors = [line for line in ended.stderr.splitlines() if line.startswith("error: ")]
    assert ended.returncode == 2
    assert [str(weights) in line for line in errors] == [True]
    champion = home.run_context.ledger.champion()
    assert champion
    assert champion.checkpoint == "better"


@pytest.mark.slow
def test_promote_and_rollback_run_as_dagster_jobs(
    home: HomeBuilder, instance: dg.DagsterInstance
) -> None:
    score_new_checkpoint(home)
    settings = Settings(home.run_context.home, "small", ("storage.keep_versions=3",))
    resources = RunContext.of(settings).resources | {"io_manager": dg.mem_io_manager}
    instance.add_dynamic_partitions("checkpoints", ["new"])
    promoted = defs.resolve_job_def("promote").execute_in_process(
        instance=instance, partition_key="new", resources=resources
    )
    champion = home.run_context.ledger.champion()
    assert promoted.success
    assert champion
    assert champion.checkpoint == "new"
    job = defs.resolve_job_def("rollback")

    def undo(tags: dict[str, str], to: int | None = None) -> dg.ExecuteInProcessResult:
        config = {"ops": {"roll_back": {"config": {"reason": "further", "to": to}}}} if to else None
        return job.execute_in_process(
            instance=instance,
            resources=home.run_context.resources,
            run_config=config,
            tags=tags,
            raise_on_error=False,
        )

    assert undo({"ratchet/why": "it wrote poems"}).success
    undone = undo({}, to=1)
    retried = undo({"dagster/root_run_id": undone.run_id}, to=1)
    assert undone.success
    assert retried.success
    refused = undo({})
    [failure] = refused.get_step_failure_events()
    assert "NothingToRollBack" in str(failure.step_failure_data.error)
    history = home.run_context.ledger.history()
    assert [(entry.kind, entry.version) for entry in history[3:]] == [
        ("promote", 4),
        ("rollback", 2),
        ("rollback", 1),
    ]
    assert [entry.decision["reasons"][-1] for entry in history[4:]] == ["it wrote poems", "further"]
    assert home.run_context.mlflow.aliases() == {"champion": 1, "previous": 2, "challenger": 4}


@pytest.mark.slow
def test_mlflow_is_synced_if_behind_and_at_each_start(
    home_builder: HomeBuilder,
) -> None:
    def tick(cursor: str | None) -> dg.SensorResult:
        context = dg.build_sensor_context(
            cursor=cursor, resources=home_builder.run_context.resources
        )
        result = mlflow_follows(context)
        assert isinstance(result, dg.SensorResult)
        return result

    assert not tick(None).run_requests
    home_builder.promoted("old")
    first = tick(None)
    assert [request.run_key for request in first.run_requests or []] == [
        request.run_key for request in tick(first.cursor).run_requests or []
    ]
    synced = {"uri": home_builder.run_context.mlflow.uri, "entry": 1}
    (home_builder.run_context.home.path / "mlflow_follows.json").write_text(
        json.dumps(synced), encoding="utf-8"
    )
    assert not tick(first.cursor).run_requests
    assert len(tick("another start").run_requests or []) == 1
    home_builder.promoted("new")
    assert len(tick(first.cursor).run_requests or []) == 1


def test_a_ledger_that_was_written_anew_does_not_continue_a_kept_head(
    home_builder: HomeBuilder, ratchet: Called
) -> None:
    home_builder.promoted("a")
    path = home_builder.run_context.home.path
    head = ratchet(path, "registry", "head")[1].strip()
    home_builder.promoted("b")
    assert ratchet(path, "registry", "verify", "--head", head)[0] == 0
    (home_builder.run_context.home.path / "promotions.db").unlink()  # and its hashes with it
    for name in ("c", "d"):
        home_builder.promoted(name)
    code, _, errors = ratchet(path, "registry", "verify", "--head", head)
    assert code == 2
    assert "entry 1 had another hash when its head was kept" in errors


@pytest.mark.parametrize("head", ["1", "x:abc", ":", "1:3dac6371"])
def test_a_head_of_another_form_is_refused(
    home_builder: HomeBuilder, ratchet: Called, head: str
) -> None:
    code, _, errors = ratchet(
        home_builder.run_context.home.path, "registry", "verify", "--head", head
    )
    assert code == 2
    assert "NUMBER:HASH" in errors
