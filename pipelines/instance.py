"""Dagster's instance settings for a home: the committed `dagster.yaml`, overlaid with the profile.

They are written to `RATCHET_HOME/dagster`. If that folder is lost, the history of Dagster's runs is
lost, but no artifact and no decision. The committed files are part of the package; the files of the
same names in the repository's root are links to them, for `dagster dev` without a flag.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from artifacts.atomic import write_atomic
from resources.backup.databases import PASSWORD
from resources.config.infrastructure import Orchestration
from resources.home import Home, NotReady
from resources.pods import DAGSTER_HOME, run_pod
from resources.settings import Settings

if TYPE_CHECKING:
    from dagster import DagsterInstance

PACKAGE = Path(__file__).resolve().parent
ROOT = PACKAGE.parent  # of the clone, or the site-packages that the wheel is installed in
HEADER = (
    "# Written by ratchet from the profile; changes here are lost (remove this line to keep "
    "yours).\n"
)
PATIENCE_S = 5  # for Dagster's database
PATHS = ("storage", "local_artifact_storage", "compute_logs")  # of the committed `dagster.yaml`


def prepare(home: Home, orchestration: Orchestration) -> Path:
    """Write both files into DAGSTER_HOME, by default `dagster` of the home, and set that variable
    for this process and its children. Returns the folder.

    Files without Ratchet's first line were written by the user and stay unchanged. Raises NotReady
    without the database's password.
    """
    if orchestration.postgres and not os.environ.get(PASSWORD):
        raise NotReady(
            f"the profile keeps Dagster's records in Postgres (orchestration.postgres): set its "
            f"password in the environment variable {PASSWORD}"
        )
    folder = (
        Path(os.environ["DAGSTER_HOME"]).expanduser().absolute()
        if os.environ.get("DAGSTER_HOME")
        else home.dagster
    )
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in (
        ("dagster.yaml", instance_settings(orchestration)),
        ("workspace.yaml", workspace()),
    ):
        text, file = HEADER + yaml.safe_dump(content, sort_keys=False), folder / name
        existing = file.read_text(encoding="utf-8") if file.exists() else HEADER
        if existing.startswith(HEADER) and existing != text:
            write_atomic(file, text)
    os.environ["DAGSTER_HOME"] = str(folder)
    return folder


def unreachable(orchestration: Orchestration) -> str:
    """Return why Dagster's database cannot be used now, and the fix; empty: it can, or is a file.
    Dagster itself tries for half a minute, and ends with a traceback.
    """
    if not (postgres := orchestration.postgres):
        return ""
    import psycopg2

    try:
        psycopg2.connect(
            host=postgres.hostname, port=postgres.port, user=postgres.username,
            dbname=postgres.database, password=os.environ.get(PASSWORD),
            connect_timeout=PATIENCE_S,
        ).close()  # fmt: skip
    except psycopg2.OperationalError as error:
        place = f"{postgres.hostname}:{postgres.port}/{postgres.database}"
        return (
            f"Dagster's records on {place} cannot be read ({' '.join(str(error).split())}): check "
            f"that the server runs and has this database, and {PASSWORD}"
        )
    return ""


@contextmanager
def opened(settings: Settings) -> Iterator[DagsterInstance]:
    """Yield Dagster's instance of a home. Raises NotReady while its database cannot be used."""
    from dagster import DagsterInstance

    prepare(settings.home, settings.profile.orchestration)
    if why := unreachable(settings.profile.orchestration):
        raise NotReady(why)
    with DagsterInstance.get() as instance:
        yield instance


def instance_settings(orchestration: Orchestration) -> dict[str, Any]:
    """Return the committed `dagster.yaml` with the profile's launcher and database.

    Its paths are left out: Dagster then keeps its history in the folder that holds the file.
    """
    committed = yaml.safe_load((PACKAGE / "dagster.yaml").read_text(encoding="utf-8"))
    settings: dict[str, Any] = {key: committed[key] for key in committed if key not in PATHS}
    if orchestration.launcher == "kubernetes" and (kubernetes := orchestration.kubernetes):
        # Each run has its own machine there: scores need not wait for one another.
        limits = settings["concurrency"]["runs"]["tag_concurrency_limits"]
        limits[:] = [limit for limit in limits if limit["key"] != "ratchet/kind"]
        settings["run_launcher"] = {
            "module": "dagster_k8s",
            "class": "K8sRunLauncher",
            "config": {
                "job_namespace": kubernetes.namespace,
                "service_account_name": kubernetes.service_account,
                "job_image": kubernetes.image,
                "load_incluster_config": True,
                "instance_config_map": "ratchet-dagster",
                "dagster_home": DAGSTER_HOME,
                "run_k8s_config": run_pod(kubernetes),
            },
        }
        # A pod's own disk goes with it.
        settings["compute_logs"] = {"module": "resources.compute_logs", "class": "StoredLogs"}
    if postgres := orchestration.postgres:
        database = {
            "hostname": postgres.hostname,
            "username": postgres.username,
            "db_name": postgres.database,
            "port": postgres.port,
            "password": {"env": PASSWORD},
            "scheme": "postgresql+psycopg2",  # SQLAlchemy's default is psycopg 3; Dagster needs 2
        }
        settings["storage"] = {"postgres": {"postgres_db": database}}
    return settings


def workspace() -> dict[str, Any]:
    """Return the committed `workspace.yaml` with an absolute working directory."""
    committed: dict[str, Any] = yaml.safe_load(
        (PACKAGE / "workspace.yaml").read_text(encoding="utf-8")
    )
    for location in committed["load_from"]:
        location["python_module"]["working_directory"] = str(ROOT)
    return committed
