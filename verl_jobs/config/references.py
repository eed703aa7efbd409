"""User plugins of a training, each named by a reference `FILE.py:NAME` or `MODULE:NAME`.

Imports neither verl nor torch, so that a profile loads quickly; `verl_jobs/plugins/plugin_check.py`
tries each plugin before a training starts. verl's own loaders also use this module
(`pkg://verl_jobs.config.references`, with the reference as the name). So each file is executed once
per process, and plugins from the same file share its state.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic import field_validator

from artifacts.hashing import hash_file
from artifacts.section import Section


class PluginError(ValueError):
    """A plugin cannot be used. The message is one line: file, name, error and fix."""


class Plugins(Section):
    """Your own plugins, each `FILE.py:NAME` or `MODULE:NAME`; empty: the built-in part.

    They are checked before a training starts (`ratchet plugins`, docs/how-to/write-a-plugin.md).
    """

    loss: str = ""
    """A function with the signature of verl's policy losses (`register_policy_loss`); replaces the
    algorithm's loss.
    """
    advantage: str = ""
    """A function with the signature of verl's advantage estimators (`register_adv_est`); replaces
    the algorithm's estimator.
    """
    dataset: str = ""
    """A subclass of verl's `RLHFDataset`: selects and words the problems, including validation
    problems.
    """
    sampler: str = ""
    """A class that selects each step's problems from observed results; replaces
    `training.curriculum` (verl_jobs/curriculum/own_sampler.py).
    """
    reward_manager: str = ""
    """A subclass of verl's `RewardManagerBase`. The exploit battery cannot test it, so it needs
    `--unverified`. A reward file does not need a reward manager.
    """
    agent_loop: str = ""
    """A subclass of verl's `AgentLoopBase`: generates each completion."""

    @field_validator("*")
    @classmethod
    def absolute(cls, reference: str) -> str:
        """Make file references absolute: Ray's workers have their own working directory."""
        if not reference:
            return reference
        where, _, name = reference.rpartition(":")
        if not where or not name.isidentifier():
            raise ValueError("write FILE.py:NAME or MODULE:NAME, e.g. my_loss.py:loss")
        return f"{Path(where).expanduser().absolute()}:{name}" if _is_file(where) else reference

    @property
    def references(self) -> dict[str, str]:
        """Return kind -> reference of the plugins that are set."""
        return {kind: reference for kind, reference in self.model_dump().items() if reference}

    @property
    def unbatched(self) -> bool:
        """Whether each rollout goes through verl's own agent loop.

        That loop calls custom agent loops and reward managers.
        """
        return bool(self.agent_loop or self.reward_manager)

    def hashes(self) -> dict[str, str]:
        """Return `plugins.<kind>` -> hash of the plugin's file, as stored in manifests.

        Files that the plugin imports are not hashed. Raises PluginError.
        """
        return {
            f"plugins.{kind}": hash_file(source(reference))
            for kind, reference in self.references.items()
        }


def is_reference(name: object) -> bool:
    return isinstance(name, str) and ":" in name


def source(reference: str) -> Path:
    """Return the file that a reference names. Raises PluginError if there is none."""
    where = reference.rpartition(":")[0]
    if _is_file(where):
        if not Path(where).is_file():
            raise PluginError(
                f"{where}: no such file: give the path of a Python file, or an importable module"
            )
        return Path(where)
    try:
        spec = importlib.util.find_spec(where)
    except ImportError as error:
        raise PluginError(f"{where}: cannot be imported: {error}") from error
    if spec is None or not spec.origin:
        raise PluginError(
            f"{where}: no such module: install it, put its folder on PYTHONPATH, or give the path "
            f"of a file (./{where}.py)"
        )
    return Path(spec.origin)


def load(reference: str) -> Any:
    """Return the object that a reference names. Raises PluginError.

    A file is executed once per process.
    """
    where, _, name = reference.rpartition(":")
    module = _module(where, source(reference))
    if hasattr(module, name):
        return getattr(module, name)
    defined = [
        defined_name
        for defined_name, value in vars(module).items()
        if getattr(value, "__module__", None) == module.__name__
    ]
    near = difflib.get_close_matches(name, defined, 1)
    hint = f"did you mean `{near[0]}`" if near else f"it defines {', '.join(defined) or 'nothing'}"
    raise PluginError(f"{where}: has no `{name}`: {hint}")


def __getattr__(name: str) -> Any:
    """Resolve verl's `getattr(module, reference)`."""
    if is_reference(name):
        return load(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _is_file(where: str) -> bool:
    return where.endswith(".py") or "/" in where


def _module(where: str, path: Path) -> ModuleType:
    name = f"ratchet_plugin_{hash_file(path)[:16]}" if _is_file(where) else where
    if name in sys.modules:
        return sys.modules[name]
    try:
        if not _is_file(where):
            return importlib.import_module(where)
        spec = importlib.util.spec_from_file_location(name, path)
        if spec is None or spec.loader is None:
            raise PluginError(f"{path}: the name of a plug-in's file must end in .py")
        module = sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    except PluginError:
        raise
    except Exception as error:
        sys.modules.pop(name, None)
        raise PluginError(f"{path}: cannot be imported: {type(error).__name__}: {error}") from error
    return module
