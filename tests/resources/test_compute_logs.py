"""What a run prints is in the object store, for a process on another machine."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest
from dagster._core.storage.compute_log_manager import ComputeIOType

from resources.compute_logs import StoredLogs
from tests.artifacts.object_store import no_object_store, object_store


@dg.op
def prints() -> None:
    print("one line of a run")


@dg.job(executor_def=dg.in_process_executor)
def printing() -> None:
    prints()


def run(folder: Path, root: str, patch: pytest.MonkeyPatch) -> tuple[bool, list[str]]:
    """Run the job with the logs at this root. Return whether it succeeded, and its log's key."""
    patch.setenv("RATCHET_HOME", str(folder / "home"))
    patch.setenv("RATCHET_SET", f"storage.root={root}")
    overrides = {"compute_logs": {"module": "resources.compute_logs", "class": "StoredLogs"}}
    with dg.instance_for_test(overrides=overrides) as instance:
        ended = printing.execute_in_process(instance=instance)
        [record] = instance.get_records_for_run(
            ended.run_id, of_type=dg.DagsterEventType.LOGS_CAPTURED
        ).records
        event = record.event_log_entry.dagster_event
        assert event
        return ended.success, [ended.run_id, "compute_logs", event.logs_captured_data.file_key]


@pytest.mark.slow
def test_another_machine_reads_what_a_run_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with object_store("logs") as root:
        succeeded, key = run(tmp_path, root, monkeypatch)
        elsewhere = StoredLogs(f"{root}/logs")
        text, _ = elsewhere.get_log_data_for_type(key, ComputeIOType.STDOUT, 0, None)
        assert succeeded
        assert text == b"one line of a run\n"
        elsewhere.delete_logs(prefix=[key[0]])
        assert elsewhere.get_log_keys_for_log_key_prefix(key[:2], ComputeIOType.STDOUT) == []


@pytest.mark.slow
def test_a_run_survives_a_store_that_cannot_be_reached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with no_object_store() as root:
        assert run(tmp_path, root, monkeypatch)[0]
