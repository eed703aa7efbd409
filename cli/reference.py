"""Generate pages from code: the configuration reference, and Dagster's settings for a cluster. Run
it with `make docs`.

In: the typed profile and its YAML files. Out: text; a test compares the committed files with it.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import inspect
import re
import textwrap
import types
import typing
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from cli.interface_reference import command_line, file_formats, python_api
from pipelines.instance import instance_settings
from resources.config.load import FOLDER, load_profile
from resources.config.profile import Profile
from resources.ray.kuberay import ray_cluster

ROOT = Path(__file__).resolve().parent.parent
BOUNDS = {"gt": ">", "ge": "≥", "lt": "<", "le": "≤"}
INTRO = """# Configuration

Made by `make docs` from `resources/config/profile.py`; change that, not this page.

A profile is a YAML file of differences from the defaults below; the defaults are the profile
`embedded`. Choose one by name or by path: `ratchet demo --profile gpu`, or `RATCHET_PROFILE=gpu`. A
profile may extend another: `extends: gpu`, or the path of a file beside it. Changes of the command
line (`--set section.key=value`) come last. `ratchet config show` prints every value and the layer
that set it. An unknown key is refused with its layer, its path and the nearest known key.
"""
ENVIRONMENT = {
    "RATCHET_HOME": "folder of everything that a run writes; default `.ratchet`",
    "RATCHET_PROFILE": "name or path of the profile; default `embedded`",
    "RATCHET_SET": (
        "changes to the profile, one `section.key=value` a line; what `--set` and `--algorithm` set"
    ),
    "RATCHET_UNVERIFIED": "1: train with a reward that failed the exploit battery (`--unverified`)",
    "RATCHET_WORKERS": "of `ratchet judge`: how many programs run at once; default one a core",
    "DAGSTER_HOME": "Dagster's own records; default `dagster` under RATCHET_HOME",
    "DAGSTER_POSTGRES_PASSWORD": "read where the profile has `orchestration.postgres`",
    "RAY_ADDRESS": "read where `sandbox.backend` is `ray`: the Ray to join",
    "WANDB_API_KEY": (
        "set: Weights & Biases receives the curves; unset: they are written under RATCHET_HOME, "
        "offline"
    ),
}


def configuration() -> str:
    """Return the reference page: a table for each section, then the shipped profiles, then the
    environment variables.
    """
    shipped = [
        f"### {path.stem}\n\n```yaml\n{path.read_text(encoding='utf-8').strip()}\n```\n"
        for path in sorted(FOLDER.glob("*.yaml"))
    ]
    variables = _table(
        ("variable", "meaning"), ((f"`{name}`", meaning) for name, meaning in ENVIRONMENT.items())
    )
    chapters = [_chapter(path, model) for path, model in sections(Profile)]
    return "\n".join(
        [
            INTRO,
            *chapters,
            "## Profiles that we ship\n",
            *shipped,
            "## Environment variables\n",
            variables,
        ]
    )


def sections(section: type[Any], path: str = "") -> Iterator[tuple[str, type[Any]]]:
    """Return every section with its dotted path, parents first; the profile itself has the empty
    path. A section is a pydantic model or a dataclass.
    """
    yield path, section
    for name, field in _keys(section).items():
        for option in _options(field.annotation):
            yield from sections(option, f"{path}.{name}" if path else name)


def cluster_settings() -> str:
    """Return the ConfigMap `ratchet-dagster` of a cluster: Dagster's settings for the profile
    `cluster`, and its code location.
    """
    orchestration = load_profile("cluster").orchestration
    assert orchestration.kubernetes is not None, (
        "the profile `cluster` has a section orchestration.kubernetes"
    )
    workspace = {
        "load_from": [
            {"grpc_server": {"host": "127.0.0.1", "port": 4000, "location_name": "ratchet"}}
        ]
    }
    head = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "ratchet-dagster", "namespace": orchestration.kubernetes.namespace},
    }
    files = {"dagster.yaml": instance_settings(orchestration), "workspace.yaml": workspace}
    blocks = "".join(
        f"  {name}: |\n{textwrap.indent(_yaml(content), '    ')}" for name, content in files.items()
    )
    return f"# Made by `make docs` from the profile `cluster`.\n{_yaml(head)}data:\n{blocks}"


def cluster_of_ray() -> str:
    """The RayCluster that the profile `cluster` submits to."""
    return (
        "# Made by `make docs` from the profile `cluster`; KubeRay 1.7 or later.\n"
        f"{_yaml(ray_cluster(load_profile('cluster')))}"
    )


def pages() -> dict[Path, str]:
    """Every file that is made here, with its text."""
    kubernetes, reference = ROOT / "deploy" / "kubernetes", ROOT / "docs" / "reference"
    return {
        reference / "command-line.md": command_line(),
        reference / "configuration.md": configuration(),
        reference / "python-api.md": python_api(),
        reference / "file-formats.md": file_formats(),
        kubernetes / "dagster.yaml": cluster_settings(),
        kubernetes / "raycluster.yaml": cluster_of_ray(),
    }


def _chapter(path: str, section: type[Any]) -> str:
    keys = [
        (name, field)
        for name, field in _keys(section).items()
        if not list(_options(field.annotation))
    ]
    table = _table(
        ("key", "type", "default", "meaning"),
        (
            (f"`{name}`", _kind(field), _default(field), _cell(field.description or ""))
            for name, field in keys
        ),
    )
    return (
        f"## {f'`{path}`' if path else 'Top level'}\n\n{inspect.cleandoc(section.__doc__ or '')}\n"
        f"\n{table if keys else ''}"
    )


def _keys(section: type[Any]) -> dict[str, FieldInfo]:
    """Return the keys of a section; those of a dataclass are described by the comment at the end of
    their line.
    """
    if issubclass(section, BaseModel):
        return section.model_fields
    hints, comments = (
        typing.get_type_hints(section),
        dict(re.findall(r"^    (\w+): .*?#\s*(.*)$", inspect.getsource(section), re.MULTILINE)),
    )
    return {
        field.name: FieldInfo(
            annotation=hints[field.name],
            default=field.default,
            description=comments.get(field.name),
        )
        for field in dataclasses.fields(section)
    }


def _options(annotation: Any) -> Iterator[type[Any]]:
    """The sections that a field may hold."""
    if isinstance(annotation, type) and (
        issubclass(annotation, BaseModel) or dataclasses.is_dataclass(annotation)
    ):
        yield annotation
    elif typing.get_origin(annotation) in (typing.Union, types.UnionType, typing.Annotated):
        for option in typing.get_args(annotation):
            yield from _options(option)


def _kind(field: FieldInfo) -> str:
    if typing.get_origin(field.annotation) is typing.Literal:
        return "one of " + ", ".join(f"`{option}`" for option in typing.get_args(field.annotation))
    name = _name(field.annotation)
    bounds = [
        f"{sign} {getattr(rule, key):g}"
        for rule in field.metadata
        for key, sign in BOUNDS.items()
        if getattr(rule, key, None) is not None
    ]
    return _cell(f"{name} {', '.join(bounds)}")


def _name(annotation: Any) -> str:
    """Return a type in words; bounds inside it are left to the error for a wrong value."""
    origin, inside = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return _name(inside[0])
    if origin is typing.Literal:
        return ", ".join(f"`{option}`" for option in inside)
    if origin is tuple and inside[-1] is ...:
        return f"list of {_name(inside[0])}"
    if origin is tuple:
        return f"[{', '.join(map(_name, inside))}]"
    if origin is collections.abc.Mapping:
        return f"mapping of {_name(inside[0])} to {_name(inside[1])}"
    return annotation.__name__ if isinstance(annotation, type) and not inside else str(annotation)


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    value = list(value) if isinstance(value, tuple) else value  # as YAML has it
    return {"": "empty", "None": "none"}.get(str(value), f"`{_cell(str(value))}`")


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    return "".join(f"| {' | '.join(row)} |\n" for row in (head, ("---",) * len(head), *rows))


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


def _yaml(data: Any) -> str:
    return str(yaml.safe_dump(data, sort_keys=False, width=150))


def main() -> None:
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
