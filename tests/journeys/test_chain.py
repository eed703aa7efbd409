"""A user's whole path, for real: raw problems to a decision by verl on Ray in Dagster runs; then the same with a kill in the middle.

The first chain has no network, no HOME and a home with spaces; the second runs beside somebody else's Ray. Neither may notice.
"""

import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from resources.ray_head import python
from tests.journeys.chain import Run, demo, left, orphans, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Run]:
    home = tmp_path_factory.mktemp("a home with spaces")
    return home, demo(home, bare_machine=True)


@pytest.fixture
def another_ray(tmp_path: Path) -> Iterator[None]:
    """Somebody else's Ray on this host, on Ray's own default port and address file."""
    session = tempfile.mkdtemp(prefix="other-ray-", dir="/tmp")  # a path that is short enough for its sockets
    command = [python(Path(session)), "-m", "ray.scripts.scripts", "start", "--head", "--block", "--node-ip-address=127.0.0.1", "--num-cpus=1"]
    command += ["--include-dashboard=false", f"--temp-dir={session}", "--disable-usage-stats", f"--object-store-memory={80 * 2**20}"]
    with (tmp_path / "ray.log").open("w") as log:
        ray = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
    assert wait_until(lambda: "Ray runtime started" in (tmp_path / "ray.log").read_text(), 60), (tmp_path / "ray.log").read_text()
    yield
    assert ray.poll() is None, "the other Ray did not survive the chain"
    ray.terminate()
    ray.wait(30)
    shutil.rmtree(session, ignore_errors=True)


def test_the_chain_reaches_a_decision_and_tells_it(undisturbed: tuple[Path, Run]) -> None:
    home, run = undisturbed
    assert run.code == 0, run.output[-3000:]
    [report] = home.glob("reports/*/summary.json")
    assert (report.parent / "index.html").stat().st_size > 10_000
    summary = json.loads(report.read_text())
    assert summary["decision"]["kind"] in ("promote", "refuse")
    assert "PROMOTED" in run.output and str(report.parent / "index.html") in run.output


def test_the_ledger_begins_with_the_first_version_and_holds_one_decision(undisturbed: tuple[Path, Run]) -> None:
    kinds = [kind for kind, *_ in left(undisturbed[0]).ledger]
    assert kinds[0] == "install" and len(kinds) == 2


def test_nothing_runs_on_when_the_chain_has_ended(undisturbed: tuple[Path, Run]) -> None:
    assert orphans(undisturbed[0]) == []


def test_a_killed_chain_goes_on_and_ends_with_the_same_datasets(undisturbed: tuple[Path, Run], another_ray: None, tmp_path: Path) -> None:
    """The kill falls into the training, where most processes are; the command line starts the run again by itself or is started again by hand."""
    home = tmp_path / "home"
    first = demo(home, kill_after=0.55 * undisturbed[1].seconds, seed=7)
    again = first if first.code == 0 else demo(home)
    assert again.code == 0, f"killed {first.killed} at {first.at_stage}: {again.output[-3000:]}"
    before, after = left(undisturbed[0]), left(home)
    assert after.datasets == before.datasets
    assert [kind for kind, *_ in after.ledger] == [kind for kind, *_ in before.ledger]
    assert orphans(home) == []
