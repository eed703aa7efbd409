"""Read rows of a dataset on the Hugging Face hub, at one commit.

`HF_ENDPOINT` and `HF_TOKEN` are respected. A private or gated dataset needs a login (`hf auth
login`). No code of a repository is executed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from problems.columns import ProblemError
from problems.reading.source import SPLIT, Read, Source
from problems.reading.table_rows import BATCH, batch_rows

TIMEOUT_S = 10.0  # timeout for a request to the hub about a revision
BUILDERS = {"jsonl": "json", "json": "json", "parquet": "parquet", "arrow": "arrow"}


@dataclass(frozen=True)
class Revision:
    """A dataset at a commit, or at the head of its main branch."""

    hub_id: str
    config: str | None = None
    commit: str | None = None


def commit_of(hub_id: str, revision: str | None = None) -> str:
    """Return the commit (40 hexadecimal digits) that a branch, tag or commit currently refers to.

    Raises ProblemError if the hub does not return one.
    """
    import httpx
    import huggingface_hub

    try:
        commit = (
            huggingface_hub.HfApi().dataset_info(hub_id, revision=revision, timeout=TIMEOUT_S).sha
        )
    except (OSError, ValueError, RuntimeError, httpx.HTTPError) as error:
        raise _hub_error(hub_id, error) from error
    if commit is None:
        raise ProblemError(
            f"the hub returned no commit for {hub_id}", "give a local path (--path)", hub_id
        )
    return str(commit)


def hub_rows(source: Source, revision: Revision) -> Iterator[Read]:
    """Yield the rows of a hub dataset's splits, in the hub's order.

    Raises ProblemError if it cannot be read.
    """
    import datasets
    import httpx

    try:
        splits = datasets.load_dataset(**_load_arguments(source, revision))
    except (
        OSError,
        ValueError,
        RuntimeError,
        httpx.HTTPError,
        datasets.exceptions.DatasetsError,
    ) as error:
        raise _hub_error(revision.hub_id, error) from error
    for split, rows in splits.items():
        if source.hub_split in (None, str(split)):
            done = 0
            for table in rows.with_format("arrow").iter(BATCH):
                for where, row in batch_rows(table, f"{revision.hub_id}: {split}", done):
                    yield (
                        where,
                        row
                        if isinstance(row, ProblemError) or not source.by_split
                        else {**row, SPLIT: str(split)},
                    )
                done += len(table)


def _load_arguments(source: Source, revision: Revision) -> dict[str, Any]:
    """Return the arguments of `datasets.load_dataset`.

    If a repository has a loading script, its files are read instead.
    """
    if not source.hub_files or revision.hub_id != source.hub_id:
        return {"path": revision.hub_id, "name": revision.config, "revision": revision.commit}
    at = f"hf://datasets/{revision.hub_id}" + (f"@{revision.commit}" if revision.commit else "")
    builder = BUILDERS[source.hub_files[0][1].rsplit(".", 1)[-1]]
    return {
        "path": builder,
        "data_files": {split: f"{at}/{pattern}" for split, pattern in source.hub_files},
    }


def _hub_error(hub_id: str, error: BaseException) -> ProblemError:
    """Return one clear error: the hub's message, and how to fix it."""
    import httpx
    from huggingface_hub import errors

    chain, link = list[BaseException](), error
    while link and link not in chain:
        chain.append(link)
        link = link.__cause__ or link.__context__  # type: ignore[assignment]
    message = (
        f"{type(error).__name__}: "
        f"{str(error).strip().splitlines()[0] if str(error).strip() else ''}"
    )[:200]

    def among(*kinds: type[BaseException]) -> bool:
        return any(isinstance(cause, kinds) for cause in chain)

    if among(errors.GatedRepoError):
        return ProblemError(
            f"hub dataset {hub_id} is gated",
            f"ask for access at its page on the hub, then `hf auth login` ({message})",
            hub_id,
        )
    if among(errors.RevisionNotFoundError):
        return ProblemError(
            f"hub dataset {hub_id} has no such revision",
            "give a branch, a tag or a commit that it has (--revision)",
            hub_id,
        )
    if among(errors.RepositoryNotFoundError):
        return ProblemError(
            f"there is no dataset {hub_id} on the hub",
            "check the id (owner/name); for a private one `hf auth login`",
            hub_id,
        )
    if among(errors.OfflineModeIsEnabled, httpx.TransportError, ConnectionError):
        reason = f"hub dataset {hub_id} cannot be read: the hub cannot be reached ({message})"
        return ProblemError(reason, "check the network, or give a local path (--path)", hub_id)
    return ProblemError(
        f"hub dataset {hub_id} cannot be read ({message})",
        "check id, --config and --revision, or give a local path (--path)",
        hub_id,
    )
