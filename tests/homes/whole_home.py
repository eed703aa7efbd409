"""A small home with one decided run, as this version writes it, with placeholder weights.

In: tests/homes/first.tar.xz, a home of an older version. Out: the fixture's folder.
"""

from __future__ import annotations

import json
import re
import tarfile
from pathlib import Path

from artifacts.integrity import content_of, hashes_of, read_manifest, seal
from artifacts.manifest import Manifest
from artifacts.store import KINDS, Artifact, manifests
from evaluation.generation.completion_cache import CompletionCache, Key
from evaluation.sampling import CompletionOutput, Sampling
from problems.json_lines import line_of
from problems.schema import read_parquet
from resources.home import Home
from resources.problem_intake import import_problems
from resources.registry.ledger import Kind, Ledger
from resources.registry.regressions import RegressionSet
from resources.run_record import PipelineRun
from tests.test_extensions import PROBLEM
from verl_jobs import samples
from verl_jobs.job import TrainingJob
from verl_jobs.samples import Sample

ARCHIVE = Path(__file__).with_name("first.tar.xz")
WEIGHTS = "model.safetensors"


def members(*folders: str) -> list[str]:
    """Return the archive's files in these folders, and weights for its checkpoints."""
    with tarfile.open(ARCHIVE) as archive:
        names = [member.name.removeprefix("./") for member in archive if member.isfile()]
    manifest = re.compile(r"(checkpoints/.*)manifest\.json")
    names += [f"{match[1]}{WEIGHTS}" for name in names if (match := manifest.fullmatch(name))]
    return sorted(name for name in names if name.startswith(folders))


def write_home(folder: Path) -> Path:
    """Write the home, whose ledger is empty."""
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, filter="data")
    hashes: dict[str, str] = {}
    for path in manifests(folder / "checkpoints"):
        path.with_name(WEIGHTS).write_text(path.parent.name, encoding="utf-8")
        hashes[read_manifest(path).content_hash] = content_of(hashes_of(path.parent))
    store = Home(folder).store()
    for path in [path for kind in KINDS for path in manifests(folder / kind)]:
        text = path.read_text(encoding="utf-8")
        for before, after in hashes.items():
            text = text.replace(before, after)
        manifest = Manifest.model_validate_json(text)
        manifest = manifest.model_copy(update={"files": hashes_of(path.parent)})
        path.write_text(seal(manifest.model_dump_json(indent=1)), encoding="utf-8")
        pointer = path.parent.parent / "current.json"
        if pointer.exists() and json.loads(pointer.read_text())["key"] == manifest.key:
            store.point(manifest)
    (folder / "promotions.db").unlink()
    write_records_again(Home(folder))
    return folder


def write_records_again(home: Home) -> None:
    """Write what is not an artifact as this version does, and what the archive lacks."""
    PipelineRun(home.runs / "chain-0001").change(state="done")
    [job_file] = home.runs.glob("*/training/*/job.json")
    job = TrainingJob.read(job_file).model_copy(update={"folder": str(job_file.parent)})
    job.write()
    for step in (1, 2):
        sample = Sample("toy/a", "def solve(x): ...", -1.0, "WA", 0.0, {"correctness": -1.0})
        samples.write(job.path, step, [sample])
    job.finish()
    [events] = home.runs.glob("*/progress.jsonl")
    rows = [json.loads(line) for line in events.read_bytes().splitlines()]
    events.write_bytes(b"".join(map(line_of, rows)))
    for battery in home.batteries.glob("*.json"):
        result = json.loads(battery.read_text(encoding="utf-8"))
        battery.write_text(seal(json.dumps(result, indent=1)), encoding="utf-8")
    clean = home.store().require("datasets", "clean_problems")
    RegressionSet(home.regressions).remember(
        read_parquet(clean.path / "problems.parquet")[:2],
        benchmark="heldout", solved_by="one", lost_by="two", chain="chain-0001", number=1,
    )  # fmt: skip
    with CompletionCache(home.path / "answers", {"model": "one"}, Sampling()) as cache:
        cache.add([(Key("hash of a prompt", 0), CompletionOutput("x = 1", 5, False, 0.1))])
    home.problem_inbox.mkdir()
    own = home.problem_inbox / "own.jsonl"
    own.write_text(json.dumps(PROBLEM) + "\n", encoding="utf-8")
    import_problems(home, own)
    own.unlink()


def fill_ledger(home: Home) -> None:
    """Record an installed champion and a refused challenger."""
    champion, challenger = (
        home.store().require("checkpoints", name) for name in ("sft_checkpoint", "chain-0001")
    )
    kinds: dict[str, tuple[Kind, Artifact]] = {
        "chain-0001/first": ("install", champion),
        "chain-0001": ("refuse", challenger),
    }
    for chain, (kind, artifact) in kinds.items():
        Ledger(home.ledger).append(
            kind,
            checkpoint=artifact.manifest.name,
            checkpoint_hash=artifact.content_hash,
            path=str(artifact.path),
            decision={"reasons": ["a test"]},
            chain=chain,
            against=None if kind == "install" else champion.content_hash,
        )
