"""Each service of a run is a Dagster resource that can be replaced by its key."""

from pathlib import Path

import dagster as dg
import pytest
from pydantic import Field

from artifacts.store import Store
from assets.raw_problems import raw_problems
from pipelines.definitions import definitions, defs
from pipelines.schedules import daily_validation
from resources.config.profile import Profile
from resources.home import Home
from resources.registry.ledger import Ledger
from resources.run_context import SERVICES, RunContext
from resources.services import (
    PROFILE,
    SUBHOME,
    RegistryResource,
    SandboxResource,
    StorageResource,
)
from resources.settings import Settings
from tests.pipelines.home_builder import HomeBuilder
from tests.pipelines.ticks import tick

ROOT = Path(__file__).resolve().parents[2]


class OtherRoot(StorageResource):
    """Artifacts in a folder of their own."""

    root: str = Field(description="The folder.")

    def store(self, profile: Profile) -> Store:
        return self.home.store(self.root)


class OtherLedger(RegistryResource):
    """A ledger in a file of its own."""

    file: str

    def ledger(self, storage: StorageResource, profile: Profile) -> Ledger:
        return Ledger(Path(self.file))


@dg.asset
def observed(run_context: RunContext) -> dg.MaterializeResult:  # type: ignore[type-arg]
    """What a stage is given."""
    return dg.MaterializeResult(
        metadata={
            "home": str(run_context.home.path),
            "steps": run_context.profile.training.steps,
            "ledger": run_context.ledger.place,
            "mlflow": run_context.mlflow.uri,
        }
    )


def seen(run_context: RunContext, tags: dict[str, str]) -> dict[str, object]:
    result = dg.materialize([observed], resources=run_context.resources, tags=tags)
    [event] = result.asset_materializations_for_node("observed")
    return {name: entry.value for name, entry in event.metadata.items()}


def test_every_service_is_a_resource_with_a_description() -> None:
    resources = defs.get_repository_def().get_top_level_resources()
    assert resources.keys() == {*SERVICES, "run_context"}
    assert [key for key, resource in resources.items() if not resource.description] == []


def test_the_tags_of_a_run_choose_home_and_profile(tmp_path: Path) -> None:
    server = ("storage.mlflow=http://localhost:1",)
    run_context = RunContext.of(Settings(Home(tmp_path / "home"), changes=server))
    embedded, smoke = seen(run_context, {}), seen(run_context, {PROFILE: "small", SUBHOME: "smoke"})
    assert smoke["home"] == f"{embedded['home']}/smoke"
    assert smoke["steps"] != embedded["steps"]
    # a home below RATCHET_HOME shares neither ledger nor MLflow
    assert embedded["mlflow"] == "http://localhost:1"
    assert "smoke" in str(smoke["mlflow"])
    assert "smoke" in str(smoke["ledger"])


def test_a_stage_writes_into_a_replaced_storage(tmp_path: Path) -> None:
    run_context = RunContext.of(Settings(Home(tmp_path / "home"), "small"))
    storage = OtherRoot(path=str(tmp_path / "home"), root=(tmp_path / "other").as_uri())
    replaced = run_context.resources | {"storage": storage}
    assert dg.materialize([raw_problems], resources=replaced).success
    assert Store((tmp_path / "other").as_uri(), cache=tmp_path / "cache").current(
        "datasets", "raw_problems"
    )
    assert run_context.store.current("datasets", "raw_problems") is None


def test_a_schedule_reads_a_replaced_ledger(
    home_builder: HomeBuilder, instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    home_builder.promoted("champion")

    def request(file: Path | str) -> object:
        ledger = {"registry": OtherLedger(file=str(file))}
        resources = home_builder.run_context.resources | ledger
        return tick(daily_validation, instance, resources)

    assert isinstance(request(home_builder.run_context.home.ledger), dg.RunRequest)
    assert isinstance(request(tmp_path / "empty.db"), dg.SkipReason)


def test_definitions_hold_a_replaced_service_and_merge_with_others() -> None:
    sandbox = SandboxResource()
    own = dg.Definitions.merge(definitions(sandbox=sandbox), dg.Definitions(assets=[observed]))
    assert own.resources
    assert own.resources["sandbox"] is sandbox
    assert own.resolve_asset_graph().has(dg.AssetKey("observed"))


def test_an_unknown_service_is_refused() -> None:
    with pytest.raises(TypeError, match=r"no service sandbx: name one of .*sandbox"):
        definitions(sandbx=SandboxResource())


def test_the_how_to_page_shows_the_example() -> None:
    example = (ROOT / "examples" / "own_services.py").read_text(encoding="utf-8")
    code = example.split('"""', 2)[2].strip()
    page = (ROOT / "docs" / "how-to" / "replace-resources.md").read_text(encoding="utf-8")
    assert f"```python\n{code}\n```" in page
