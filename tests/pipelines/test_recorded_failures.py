"""What the record of a pipeline run says after a stage failed."""

import dagster as dg
import pytest

from pipelines.jobs import NOT_COUNTED, record_failure
from resources import stage_retry
from resources.run_context import RunContext
from resources.run_record import PipelineRun
from sandbox.sandbox import SandboxError
from tests.pipelines.home_builder import HomeBuilder


def run_broken(stage: dg.AssetsDefinition, home_builder: HomeBuilder) -> None:
    """Run a job of one stage that fails."""
    job = dg.define_asset_job("broken", hooks={record_failure}, executor_def=dg.in_process_executor)
    definitions = dg.Definitions(
        assets=[stage], jobs=[job], resources=home_builder.run_context.resources
    )
    with dg.DagsterInstance.ephemeral() as instance:
        definitions.resolve_job_def("broken").execute_in_process(
            instance=instance, raise_on_error=False
        )


def test_the_record_names_the_cause_after_the_last_retry(
    home_builder: HomeBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage_retry, "PAUSE_S", 0.0)

    attempts = []

    @dg.asset
    def stage(context: dg.AssetExecutionContext, run_context: RunContext) -> None:
        with run_context.stage(context):
            attempts.append(1)
            raise SandboxError("no worker started")

    run_broken(stage, home_builder)
    record = PipelineRun(home_builder.run_context.home.runs, "chain-0001").record
    assert len(attempts) == 3
    assert record.failures == 1
    assert record.error == "stage: no worker started"


@pytest.mark.parametrize("cause", NOT_COUNTED)
def test_a_run_stays_open_after_what_is_no_fault_of_its_own(
    cause: str, home_builder: HomeBuilder
) -> None:
    @dg.asset
    def stage(context: dg.AssetExecutionContext, run_context: RunContext) -> None:
        with run_context.stage(context):
            raise dg.Failure(f"chain-0001: {cause}", allow_retries=False)

    run_broken(stage, home_builder)
    assert PipelineRun(home_builder.run_context.home.runs, "chain-0001").record.failures == 0
