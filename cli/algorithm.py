"""`ratchet train --show`: an algorithm's paper and rule, and each override that verl is told, those of the algorithm first."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.markup import escape

from resources.config.profile import load_profile
from verl_jobs.config.overrides import overrides


def show_algorithm(profile_name: str | None, console: Console) -> int:
    training = load_profile(profile_name).training
    method = training.method
    console.print(
        f"[bold]{escape(method.title)}[/] ({escape(method.paper)})", soft_wrap=True, highlight=False
    )
    console.print(escape(method.rule), soft_wrap=True, highlight=False)
    for unrun in filter(None, (method.unrun, method.blocked, training.scale.unrun)):
        console.print(f"[yellow]{escape(unrun)}[/]", soft_wrap=True, highlight=False)
    paths = {name: Path(f"<{name}>") for name in ("model", "train", "validation", "folder")}
    told = overrides(training, seed=0, loggers=[], name="<chain>", **paths)
    console.print(
        "\n[bold]verl.trainer.main_ppo is told[/] (the seed is the chain's)", soft_wrap=True
    )
    for line in sorted(told, key=lambda line: line not in method.overrides):
        console.print(
            f"  {escape(line)}",
            style="bold" if line in method.overrides else "",
            soft_wrap=True,
            highlight=False,
        )
    return 0
