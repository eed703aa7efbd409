"""Few-shot adaptation of a tiny model to a new family: k examples in the prompt, or k trained on.

    python -m measurements.adaptation      two choices of examples, 60 held-out problems a family
    python -m measurements.adaptation --problems 10 --steps 40 --shots 1 2    a short trial run

The start is warmed up, without slips, on compositions that use no operation of any family
(problems/embedded/families.py). A second start, warmed up on all compositions, is an upper bound;
it is evaluated without adaptation. A repeated command resumes: existing starts and cells are
reused.
Prints the table in Markdown and the path of the JSON.
"""

from __future__ import annotations

import argparse
import json
import shutil
import time
from pathlib import Path

from evaluation.benchmarks.embedded import SAMPLING
from evaluation.benchmarks.few_shot import few_shot
from evaluation.evaluate import evaluate
from evaluation.scorecard import Scorecard
from experiments.adapt import embedded_families
from experiments.adaptation import Family, Row, Study, study_id
from problems.demonstrations import demonstration
from problems.embedded.compositional import FamilyConfig, generate
from problems.embedded.families import common
from problems.prompt import prompt_text
from sandbox.sandbox import Sandbox, SandboxConfig
from verl_jobs.sft.adaptation import Adaptation
from verl_jobs.sft.tiny_model import TinyModel, make
from verl_jobs.sft.warm_up import WarmUp, warm_up


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", type=Path, default=Path(".ratchet/benchmarks/adaptation"))
    parser.add_argument("--problems", type=int, default=60)
    parser.add_argument("--shots", type=int, nargs="+", default=[1, 2, 4, 16, 64])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--steps", type=int, default=800, help="of the warm-up")
    parser.add_argument("--demonstrations", type=int, default=1200)
    arguments = parser.parse_args()
    family = FamilyConfig(demonstrations=arguments.demonstrations, slip_rate=0.0)
    config = Adaptation(
        shots=tuple(arguments.shots), seeds=arguments.seeds, problems=arguments.problems
    )
    families = embedded_families(family, config)
    new = start(arguments.folder, "new", family, arguments.steps)
    upper_bound = start(arguments.folder, "known", family, arguments.steps)
    sampling = SAMPLING.model_copy(update={"max_new_tokens": 104})
    study = Study(
        new,
        families,
        config,
        sampling,
        arguments.folder / f"study-{study_id(new, families, config, sampling)}",
    )
    began = time.monotonic()
    with Sandbox(SandboxConfig()) as sandbox:
        rows = study.run(
            sandbox,
            lambda name, done, total: print(
                f"{time.monotonic() - began:.0f} s, {done + 1} of {total}: {name}", flush=True
            ),
        )
        bounds = {
            each.name: solved_share(upper_bound, each, sandbox, arguments.folder)
            for each in families
        }
    print(f"\n{HEAD}")
    for row in rows:
        print(line(row))
    print(
        "\nUpper bound, warmed up on all compositions: "
        + ", ".join(f"{name} {100 * share:.0f} %" for name, share in bounds.items())
    )
    print(study.folder / "result.json")


def start(folder: Path, kind: str, family: FamilyConfig, steps: int) -> Path:
    """Return a warmed-up tiny model, trained now unless it exists; both kinds share a tokenizer.

    kind: `new`: the demonstrations use no operation of a family; `known`: all demonstrations.
    """
    target = folder / f"start-{kind}-{family.demonstrations}-{steps}"
    if (target / "losses.json").exists():
        return target
    demonstrations = [problem for problem in generate(family) if problem.split == "demonstrations"]
    problems = common(family, family.demonstrations) if kind == "new" else demonstrations
    base = folder / "base"
    shutil.rmtree(base, ignore_errors=True)
    make(
        TinyModel(),
        [
            text
            for problem in demonstrations
            for text in (problem.statement, demonstration(problem))
        ],
        base,
    )
    chats = [(prompt_text(problem), demonstration(problem)) for problem in problems]
    temporary = target.with_name(f".{target.name}")
    state = folder / f"{target.name}.pt"
    losses = warm_up(base, chats, WarmUp(steps=steps), temporary, state=state)
    (temporary / "losses.json").write_text(json.dumps(losses))
    temporary.replace(target)
    print(
        f"{target.name}: {len(chats)} demonstrations, loss {losses[0]:.2f} to {losses[-1]:.3f}",
        flush=True,
    )
    return target


def solved_share(checkpoint: Path, family: Family, sandbox: Sandbox, folder: Path) -> float:
    """Return the share of a family's held-out problems that a start solves without examples."""
    path = folder / f"{checkpoint.name}-{family.name}-{len(family.heldout)}.json"
    if not path.exists():
        benchmark = few_shot(
            family.name, family.heldout, (), SAMPLING.model_copy(update={"max_new_tokens": 104})
        )
        evaluate(checkpoint, checkpoint.name, "", benchmark, sandbox).write(path)
    return Scorecard.read(path).pass_at_1


HEAD = (
    (
        "| family | way | k | solved | 95 % interval | gain over the start, points | 95 % "
        "interval | seconds |\n"
    )
    + "|---" * 8
    + "|"
)


def line(row: Row) -> str:
    if row.note:
        return f"| {row.family} | {row.way} | {row.k} | {row.note} | | | | |"
    (low, high), (least, most) = row.interval, row.gain_interval
    gain = f"{100 * row.gain:+.1f} | {100 * least:+.1f} to {100 * most:+.1f}" if row.k else " | "
    solved = f"{row.share:.1%} of {row.tasks} | {100 * low:.1f} to {100 * high:.1f}"
    return f"| {row.family} | {row.way} | {row.k or ''} | {solved} | {gain} | {row.seconds:.0f} |"


if __name__ == "__main__":
    main()
