"""Parts of a training that a user brings, each named `FILE.py:NAME` or `MODULE:NAME`. In: such a reference. Out: what it names, and its file's hash.

Neither verl nor torch is imported here, so that a profile is read at once; `verl_jobs/plugins/plugin_check.py` tries what is named before anything starts.
verl's own loaders come here as well (`pkg://verl_jobs.config.references`, with the reference for a name): so a file is run once a process, and its parts share
what it holds.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic import BaseModel, ConfigDict, field_validator

from artifacts.hashing import hash_file


class PluginError(ValueError):
    """A part that cannot be used: one line with the file, the name, what is wrong and the mend."""


class Plugins(BaseModel):
    """Parts of your own, each `FILE.py:NAME` or `MODULE:NAME`; empty: ours. Tried before anything starts (`ratchet plugins`, docs/plugins.md)."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    loss: str = ""
    """A function with the arguments of verl's policy losses (`register_policy_loss`), instead of the algorithm's."""
    advantage: str = ""
    """A function with the arguments of verl's advantage estimators (`register_adv_est`), instead of the algorithm's."""
    dataset: str = ""
    """A subclass of verl's `RLHFDataset`: which problems, in which words; validation problems too."""
    sampler: str = ""
    """A class that draws each step's problems by what was observed, instead of `training.curriculum` (verl_jobs/curriculum/own_sampler.py)."""
    reward_manager: str = ""
    """A subclass of verl's `RewardManagerBase`. The exploit battery cannot try it: it trains with `--unverified` alone. A reward file needs none."""
    agent_loop: str = ""
    """A subclass of verl's `AgentLoopBase`: how an answer comes about."""

    @field_validator("*")
    @classmethod
    def absolute(cls, reference: str) -> str:
        """Ray's workers have a working directory of their own."""
        if not reference:
            return reference
        where, _, name = reference.rpartition(":")
        if not where or not name.isidentifier():
            raise ValueError("write FILE.py:NAME or MODULE:NAME, e.g. my_loss.py:loss")
        return f"{Path(where).expanduser().absolute()}:{name}" if _is_file(where) else reference

    @property
    def named(self) -> dict[str, str]:
        """Kind -> reference of those that are given."""
        return {kind: reference for kind, reference in self.model_dump().items() if reference}

    @property
    def unbatched(self) -> bool:
        """Whether each rollout goes through verl's own agent loop: there own loops and reward managers are asked."""
        return bool(self.agent_loop or self.reward_manager)

    def hashes(self) -> dict[str, str]:
        """`plugins.<kind>` -> hash of the file that is named, as passports keep it; what that file imports is not in it. Raises PluginError."""
        return {
            f"plugins.{kind}": hash_file(source(reference))
            for kind, reference in self.named.items()
        }


def is_reference(name: object) -> bool:
    return isinstance(name, str) and ":" in name


def source(reference: str) -> Path:
    """The file that a reference names. Raises PluginError where there is none."""
    where = reference.rpartition(":")[0]
    if _is_file(where):
        if not Path(where).is_file():
            raise PluginError(
                f"{where}: no such file: give the path of a Python file, or a module that can be imported"
            )
        return Path(where)
    try:
        spec = importlib.util.find_spec(where)
    except ImportError as error:
        raise PluginError(f"{where}: cannot be imported: {error}") from error
    if spec is None or not spec.origin:
        raise PluginError(
            f"{where}: no such module: install it, put its folder on PYTHONPATH, or give the path of a file (./{where}.py)"
        )
    return Path(spec.origin)


def load(reference: str) -> Any:
    """What a reference names; a file is run once a process. Raises PluginError."""
    where, _, name = reference.rpartition(":")
    module = _module(where, source(reference))
    if hasattr(module, name):
        return getattr(module, name)
    defined = [
        known
        for known, value in vars(module).items()
        if getattr(value, "__module__", None) == module.__name__
    ]
    near = difflib.get_close_matches(name, defined, 1)
    hint = f"did you mean `{near[0]}`" if near else f"it defines {', '.join(defined) or 'nothing'}"
    raise PluginError(f"{where}: has no `{name}`: {hint}")


def __getattr__(name: str) -> Any:
    """For verl's `getattr(module, name)` with a reference for a name."""
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
            raise PluginError(f"{path}: a plug-in's file ends in .py")
        module = sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    except PluginError:
        raise
    except Exception as error:
        sys.modules.pop(name, None)
        raise PluginError(f"{path}: cannot be imported: {type(error).__name__}: {error}") from error
    return module
