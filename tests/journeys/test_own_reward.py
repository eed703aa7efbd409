"""A user's own reward in a complete pipeline run.

A reward that has passed the battery trains. Any other reward is refused, or marked in every later
report.
"""

import json
import subprocess
from pathlib import Path

import pytest

from tests.journeys.demo_run import demo, ratchet

pytestmark = [pytest.mark.soak]
SMALL = Path(__file__).parents[2] / "pipelines" / "profiles" / "small.yaml"
GENEROUS = 'TASK = "code"\n\ndef reward(task, answer, report):\n    return 1.0\n'


def profile(folder: Path, reward: Path) -> str:
    path = folder / "own.yaml"
    path.write_text(SMALL.read_text() + f"reward: {{file: {json.dumps(str(reward))}}}\n")
    return str(path)


def passport(home: Path) -> dict[str, object]:
    [path] = home.glob("checkpoints/chain-0001/*/manifest.json")
    facts: dict[str, object] = json.loads(path.read_text())["facts"]
    return facts


def test_the_reward_template_trains_unchanged(tmp_path: Path) -> None:
    process = subprocess.run(
        ratchet("reward", "new", "--task", "code", "--out", str(tmp_path / "my_reward.py")),
        check=False,
    )
    assert process.returncode == 0
    run = demo(tmp_path / "home", profile=profile(tmp_path, tmp_path / "my_reward.py"))
    assert run.code == 0, run.output[-3000:]
    assert not passport(tmp_path / "home").get("unverified")


def test_an_unverified_reward_trains_only_with_its_flag(
    tmp_path: Path,
) -> None:
    (tmp_path / "generous.py").write_text(GENEROUS)
    home, own = tmp_path / "home", profile(tmp_path, tmp_path / "generous.py")
    refused = demo(home, profile=own)
    assert refused.code != 0, refused.output[-3000:]
    assert "exploit battery" in refused.output, refused.output[-3000:]
    run = demo(home, "--unverified", profile=own)
    assert run.code == 0, run.output[-3000:]
    assert passport(home)["unverified"] == ["chain-0001"]
    [summary] = home.glob("reports/*/summary.json")
    assert "unverified" in summary.read_text()
