"""The components by name, found in the files of this folder; a new one needs a `COMPONENT`."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path

from rewards import components
from rewards.components.component import Component


def _components() -> dict[str, Component]:
    """Return the component of every module that has one, in their order and then by name."""
    names = [module.name for module in pkgutil.iter_modules(components.__path__)]
    modules = {
        name: importlib.import_module(f"{components.__name__}.{name}")
        for name in names
        if name != "registry"
    }
    by_name = {
        name: module.COMPONENT for name, module in modules.items() if hasattr(module, "COMPONENT")
    }
    return dict(sorted(by_name.items(), key=lambda item: (item[1].order, item[0])))


COMPONENTS: dict[str, Component] = _components()


def file_of(name: str) -> Path:
    """Return the file that defines a component."""
    return Path(__file__).with_name(f"{name}.py")
