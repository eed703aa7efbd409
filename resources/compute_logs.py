"""Dagster's logs of what a run prints, kept where the artifacts are: a pod goes with its disk.

Named as `compute_logs` in dagster.yaml. In: the settings of this process. Out: the folder `logs` of
the object store, or of the home. While a run prints, its logs are copied there every half minute.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from dagster import DagsterInstance
from dagster._core.storage.cloud_storage_compute_log_manager import (  # private as of 1.13.27
    PollingComputeLogSubscriptionManager,
    TruncatingCloudStorageComputeLogManager,
)
from dagster._core.storage.compute_log_manager import CapturedLogSubscription, ComputeIOType
from dagster._core.storage.local_compute_log_manager import (
    IO_TYPE_EXTENSION,
    LocalComputeLogManager,
)
from dagster._serdes import ConfigurableClass, ConfigurableClassData

from artifacts.folder import Folder
from resources.settings import Settings

UPLOAD_S = 30


class StoredLogs(TruncatingCloudStorageComputeLogManager[DagsterInstance], ConfigurableClass):
    """Captures logs in a temporary folder, and keeps them in a folder at any fsspec URL."""

    def __init__(self, url: str, inst_data: ConfigurableClassData | None = None) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.folder, self._inst_data = Folder(url), inst_data
        self._local = LocalComputeLogManager(tempfile.mkdtemp(prefix="ratchet-logs-"))
        self._subscriptions = PollingComputeLogSubscriptionManager(self)  # type: ignore[no-untyped-call]

    @property
    def inst_data(self) -> ConfigurableClassData | None:
        return self._inst_data

    @classmethod
    def config_type(cls) -> dict[str, Any]:
        return {}

    @classmethod
    def from_config_value(
        cls, inst_data: ConfigurableClassData | None, config_value: Any
    ) -> StoredLogs:
        """Raises ProfileError."""
        settings = Settings.read()
        root = settings.profile.storage.root or str(settings.home.path)
        return cls(f"{root.rstrip('/')}/logs", inst_data)

    @property
    def local_manager(self) -> LocalComputeLogManager:
        return self._local

    @property
    def upload_interval(self) -> int:
        return UPLOAD_S

    def cloud_storage_has_logs(
        self, log_key: Sequence[str], io_type: ComputeIOType, partial: bool = False
    ) -> bool:
        return self.folder.has(_name(log_key, io_type, partial))

    def download_from_cloud_storage(
        self, log_key: Sequence[str], io_type: ComputeIOType, partial: bool = False
    ) -> None:
        path = self._local.get_captured_local_path(log_key, IO_TYPE_EXTENSION[io_type], partial)
        self.folder.get(_name(log_key, io_type, partial), Path(path))

    def _upload_file_obj(
        self,
        data: IO[bytes],
        log_key: Sequence[str],
        io_type: ComputeIOType,
        partial: bool = False,
    ) -> None:
        """Copy a log. A storage that cannot be reached costs the log, not the run."""
        try:
            self.folder.write(_name(log_key, io_type, partial), data.read())
            if not partial:
                with suppress(FileNotFoundError):
                    self.folder.remove(_name(log_key, io_type, partial=True))
        except OSError as error:
            print(f"the log {self.folder.url} cannot be written: {error}", file=sys.stderr)

    def delete_logs(
        self, log_key: Sequence[str] | None = None, prefix: Sequence[str] | None = None
    ) -> None:
        self._local.delete_logs(log_key, prefix)
        names = ["/".join(prefix)] if prefix else []
        for io_type in IO_TYPE_EXTENSION if log_key else ():
            names += [_name(log_key or (), io_type, partial) for partial in (False, True)]
        for name in names:
            with suppress(FileNotFoundError):
                self.folder.remove(name)

    def get_log_keys_for_log_key_prefix(
        self, log_key_prefix: Sequence[str], io_type: ComputeIOType
    ) -> list[list[str]]:
        suffix = f".{IO_TYPE_EXTENSION[io_type]}"
        names = self.folder.names("/".join(log_key_prefix))
        return [
            [*log_key_prefix, name.removesuffix(suffix)] for name in names if name.endswith(suffix)
        ]

    def download_url_for_type(self, log_key: Sequence[str], io_type: ComputeIOType) -> None:
        """Return None: a browser cannot open the store's addresses."""

    def display_path_for_type(self, log_key: Sequence[str], io_type: ComputeIOType) -> str:
        return self.folder.at(_name(log_key, io_type))

    def on_subscribe(self, subscription: CapturedLogSubscription) -> None:
        self._subscriptions.add_subscription(subscription)

    def on_unsubscribe(self, subscription: CapturedLogSubscription) -> None:
        self._subscriptions.remove_subscription(subscription)

    def dispose(self) -> None:
        self._subscriptions.dispose()
        super().dispose()  # type: ignore[no-untyped-call]


def _name(log_key: Sequence[str], io_type: ComputeIOType, partial: bool = False) -> str:
    return "/".join(log_key) + f".{IO_TYPE_EXTENSION[io_type]}" + (".partial" if partial else "")
