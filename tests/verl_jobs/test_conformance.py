"""What Ratchet relies on in verl exists there, and is touched nowhere else.

`ratchet verl-conformance PATH` does the first for another version. Trainings test the behaviour of
the installed one: rewards, batches, buffers, saves, resume, agent loops, validation
(tests/journeys/).
"""

from __future__ import annotations

import ast
import importlib.util
import re
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.app.commands import app
from tests.test_architecture import ROOT
from verl_jobs.adapter import conformance, versions

SPEC = importlib.util.find_spec("verl")
assert SPEC
assert SPEC.origin
VERL = Path(SPEC.origin).parent
OURS = sorted((ROOT / "verl_jobs").rglob("*.py"))
ADAPTER = ROOT / "verl_jobs" / "adapter"
PRIVATE = re.compile(
    r"_dapo_filtered_keys|_update_actor|_evict_terminal_groups|_clear_groups|_select_prompt_uids|_run_prompt"
    r"|_materialize_batch|_build_module|_ROLLOUT_REGISTRY|__ray_metadata__|\b_run_agent_loop"
    r"|\b_local_tensor|\b_dtensor_spec"
)


def test_the_installed_verl_has_all_that_its_adapter_relies_on() -> None:
    findings = conformance.findings(VERL, versions.installed())
    assert len(findings) > 100
    assert not [each for each in findings if each.fault]


def test_what_another_verl_lacks_is_named(tmp_path: Path) -> None:
    verl = shutil.copytree(VERL, tmp_path / "source" / "verl")
    buffers = verl / "trainer" / "ppo" / "v1" / "replay_buffer.py"
    buffers.write_text(buffers.read_text().replace("def _clear_groups(", "def _clear("))
    schema = verl / conformance.SCHEMA
    schema.write_text(schema.read_text().replace("save_freq:", "saves_every:"))
    ended = CliRunner().invoke(app, ["verl-conformance", "--read-only", str(verl.parent)])
    lines = [line for line in ended.stdout.splitlines() if line.endswith("does not exist")]
    assert ended.exit_code == 1
    assert lines == [
        "trainer/ppo/v1/replay_buffer.py:ReplayBuffer._clear_groups: does not exist",
        "trainer.save_freq: does not exist",
    ]


def test_private_names_of_verl_are_used_in_the_adapter_alone() -> None:
    users = {
        str(path.relative_to(ROOT))
        for path in OURS
        if ADAPTER not in path.parents and PRIVATE.search(path.read_text(encoding="utf-8"))
    }
    assert users <= {"verl_jobs/cpu/batched.py"}  # its docstrings name what they follow


def test_no_module_of_verl_is_changed_outside_the_adapter() -> None:
    changed = []
    for path in OURS:
        if ADAPTER in path.parents:
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        modules = {
            alias.asname or alias.name.split(".")[-1]
            for node in ast.walk(tree)
            if isinstance(node, ast.Import | ast.ImportFrom)
            for alias in node.names
            if re.match(r"verl\b|transfer_queue", getattr(node, "module", None) or alias.name)
        }
        for node in ast.walk(tree):
            changed += [
                f"{path.relative_to(ROOT)}:{target.lineno}"
                for target in (node.targets if isinstance(node, ast.Assign) else [])
                if isinstance(target, ast.Attribute)
                and isinstance(target.value, ast.Name)
                and target.value.id in modules
            ]
    assert not changed


def test_the_installed_verl_has_an_adapter() -> None:
    assert (ROOT / f"{versions.installed().replace('.', '/')}.py").is_file()


@pytest.mark.parametrize("version", ["0.8.0", "0.10.0.dev", "1.0"])
def test_a_version_without_an_adapter_is_refused_by_name(version: str) -> None:
    with pytest.raises(versions.UnsupportedVerl, match=rf"verl {version} .* supports 0\.9\.x"):
        versions.adapter_name(version)
