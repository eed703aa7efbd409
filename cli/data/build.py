"""`ratchet data build`: make the dataset of a home without training, by the same assets."""

from __future__ import annotations

import json
from pathlib import Path

from rich.console import Console

from artifacts.portable import export
from artifacts.store import Artifact
from assets.stages import PREPARING
from cli.data.show import datasets
from cli.data.sources import add
from cli.lookup.damage import Damage
from pipelines.launch import INTERRUPTED, explain_failure, prepare_run, run_with_view, start_worker
from pipelines.watch.text import print_text
from pipelines.watch.view import View, stages_of
from problems.dataset.card import CARD
from problems.reading.place import Place
from problems.sources.registry import source_name
from resources.home import NotReady
from resources.preflight import check_sources, trains
from resources.run_record import PipelineRun
from resources.settings import Settings

RECORD = "data"  # the record of the job refresh_data


def data_build(files: list[Path], out: str, settings: Settings, console: Console) -> int:
    """Add the files as sources, and run the dataset's part of the graph.

    out: folder or URL for a copy. Returns 0, 130 for Ctrl-C, else 1. Raises ProblemError for a file
    without a readable row, and NotReady.
    """
    prepare_run(settings, trains=False)
    home, folder = settings.home, settings.home.runs / RECORD
    for file in files:
        add(source_name(file), Place(file), home, console)
    check_sources(home, settings.profile)
    if trains(home):  # else there are benchmarks at most, and the dataset is that of the demo
        settings = settings.with_changes(["shipped_problems=[]"])
    stages = stages_of(settings.profile, PREPARING)
    code = run_with_view(
        lambda: start_worker(settings, "refresh_data", RECORD, "ratchet data build"),
        View(folder, f"dataset · profile {settings.title}", stages),
        PipelineRun(home.runs, RECORD),
        console,
    )
    if code:
        if code != INTERRUPTED:
            explain_failure(folder, code)
        return code
    damage = Damage()
    console.print(datasets(damage.whole(settings.store, stages)))
    artifact = settings.store.require("datasets", "clean_problems")
    if out:
        try:
            export(artifact, out)
        except OSError as error:
            raise NotReady(f"--out: {error}") from error
    _print_place(artifact, out or str(artifact.path), console)
    return damage.exit_code()


def _print_place(artifact: Artifact, place: str, console: Console) -> None:
    count = artifact.manifest.facts["kept"]
    print_text(
        console,
        f"\nDataset: {count} problems in {place}, hash {artifact.content_hash}\n"
        f"Its card: {place.rstrip('/')}/{CARD}\n"
        f"Train on it elsewhere: ratchet train --set dataset={json.dumps(place)[1:-1]}",
    )
