"""The report of a pipeline run: one self-contained HTML file, and the same facts as JSON.

In: `ReportFacts`. Out: `index.html` and `summary.json` in a folder. Pictures and styles are
embedded; nothing is downloaded when it is opened.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from artifacts.atomic import write_atomic
from artifacts.charts import data_uri
from artifacts.provenance_drawing import Box, draw
from evaluation.benchmarks.benchmark import Benchmark
from evaluation.promotion.comparison import p_text, signed
from evaluation.promotion.rate import Rate, points
from evaluation.reports import plots
from evaluation.reports.facts import Curve, Example, Group, Link, ReportFacts
from evaluation.reports.live_curves import panels
from evaluation.scorecard import Scorecard, ScoredSample
from problems.dataset.charts import histogram

TEMPLATE = Path(__file__).with_name("report.html.jinja")
XMLNS = ' xmlns="http://www.w3.org/2000/svg"'  # redundant inside a page
PASS_RATE = "pass rate of the model that training starts from"
MAX_TASKS = 80  # changed tasks on the page; summary.json has all
OUTCOMES = {
    "won": "Solved now, failed before",
    "lost": "Failed now, solved before",
    "unsolved": "Still unsolved",
}


def write_report(facts: ReportFacts, folder: Path) -> Path:
    """Write both files atomically, and return the path of index.html."""
    folder.mkdir(parents=True, exist_ok=True)
    write_atomic(folder / "summary.json", json.dumps(facts.summary(), indent=1, ensure_ascii=False))
    write_atomic(folder / "index.html", render(facts))
    return folder / "index.html"


def render(facts: ReportFacts) -> str:
    """Return the page. Model output is escaped: a report shows programs, it never runs them."""
    import jinja2

    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    environment.filters.update(
        percent=points, signed=signed, p=p_text, short=lambda text: text[:12]
    )
    examples = {
        title: [
            (e, *changed_lines(e.before, e.after)) for e in facts.examples if e.outcome == outcome
        ]
        for outcome, title in OUTCOMES.items()
    }
    page = environment.from_string(TEMPLATE.read_text(encoding="utf-8")).render(
        facts=facts,
        decision=facts.decision,
        comparison=facts.decision.comparison,
        pictures=_pictures(facts),
        examples=examples,
        figures=panels(facts.curve.figures).replace(XMLNS, "")
        if facts.curve and any(facts.curve.figures.values())
        else "",
        difficulty=histogram({"problems": facts.pass_rates}, PASS_RATE, buckets=10).replace(
            XMLNS, ""
        )
        if facts.pass_rates
        else "",
        most=MAX_TASKS,
        provenance=provenance_picture(facts.provenance) if facts.provenance else "",
    )
    return with_contents(page)


def with_contents(page: str) -> str:
    """Give each section an id, and list the sections as links in the empty `nav`."""
    links: list[str] = []

    def marked(section: re.Match[str]) -> str:
        attributes, title = section.groups()
        name = re.sub("[^a-z]+", "-", title.lower()).strip("-")
        links.append(f'<a href="#{name}">{title}</a>')
        return f'<section id="{name}"{attributes}>\n  <h2>{title}</h2>'

    page = re.sub(r"<section([^>]*)>\s*<h2>([^<]*)</h2>", marked, page)
    return page.replace("></nav>", f">{''.join(links)}</nav>", 1)


def provenance_picture(links: Sequence[Link]) -> str:
    """Draw the artifacts and their inputs; the page's style has the colours."""
    names = {link.name for link in links}
    boxes = [
        Box(
            link.name,
            link.kind,
            link.name,
            link.content_hash[:12],
            f"{link.kind}/{link.name}\n{link.content_hash}\n{link.details}",
            tuple(("", source) for source in link.made_from if source in names - {link.name}),
        )
        for link in links
    ]
    return draw(boxes).replace(XMLNS, "")


def groups(before: Scorecard, after: Scorecard, prefix: str = "operations-") -> tuple[Group, ...]:
    """Group both scorecards' tasks by tag: "operations-2" becomes the group "2 operations"."""
    old, new = before.solved_by(prefix), after.solved_by(prefix)
    subject = prefix.rstrip("-")
    return tuple(
        Group(
            label=f"{tag.removeprefix(prefix)} {subject}",
            before=Rate.counted(*old[tag]),
            after=Rate.counted(*new[tag]),
        )
        for tag in old
        if tag in new
    )


def pick_examples(
    benchmark: Benchmark, before: Scorecard, after: Scorecard, each: int = 3
) -> tuple[Example, ...]:
    """Return at most `each` tasks of every outcome, spread over the benchmark and always the same;
    of unsolved tasks, the nearest misses first.
    """
    old, new = _first(before.samples), _first(after.samples)
    examples: dict[str, list[Example]] = {outcome: [] for outcome in OUTCOMES}
    for problem in benchmark.problems:
        task = benchmark.task_id(problem)
        a, b = old[task], new[task]
        if b.verdict == "AC" and a.verdict == "AC":
            continue
        outcome: Any = "won" if b.verdict == "AC" else "lost" if a.verdict == "AC" else "unsolved"
        example = Example(
            outcome=outcome,
            task_id=problem.problem_id,
            prompt=benchmark.prompt(problem)[-1]["content"],
            before=a.program or a.completion,
            after=b.program or b.completion,
            before_verdict=_in_words(a),
            after_verdict=_in_words(b),
            first_failed=b.first_failed,
        )
        examples[outcome].append(example)
    return tuple(
        example
        for listed in examples.values()
        for example in listed[:: max(1, len(listed) // each)][:each]
    )


def changed_lines(before: str, after: str) -> tuple[list[tuple[str, bool]], list[tuple[str, bool]]]:
    """Return the lines of both programs, each with whether the other program lacks it."""
    old, new = before.splitlines(), after.splitlines()
    marks_old, marks_new = [True] * len(old), [True] * len(new)
    for block in difflib.SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks():
        marks_old[block.a : block.a + block.size] = [False] * block.size
        marks_new[block.b : block.b + block.size] = [False] * block.size
    return list(zip(old, marks_old, strict=True)), list(zip(new, marks_new, strict=True))


def curve_picture(curve: Curve) -> str:
    """Plot the reward curve with its scores, for the report and for Dagster's page."""
    scores: dict[str, list[plots.Point]] = {}
    for score in sorted(curve.scores, key=lambda s: s.step):
        scores.setdefault(score.benchmark, []).append(
            plots.Point(score.step, score.rate.share, score.rate.low, score.rate.high)
        )
    return plots.reward_curve(curve.rewards, scores)


def _pictures(facts: ReportFacts) -> dict[str, str]:
    pictures: dict[str, str] = {}
    if facts.curve and facts.curve.rewards:
        pictures["curve"] = curve_picture(facts.curve)
    if facts.groups:
        pairs = [
            plots.BeforeAfter(
                g.label,
                (g.before.share, g.before.low, g.before.high),
                (g.after.share, g.after.low, g.after.high),
            )
            for g in facts.groups
        ]
        pictures["groups"] = plots.before_after(pairs, (facts.before_name, "challenger"))
    return {name: data_uri(picture) for name, picture in pictures.items()}


def _first(samples: Iterable[ScoredSample]) -> dict[str, ScoredSample]:
    return {sample.task_id: sample for sample in samples if sample.sample == 0}


def _in_words(sample: ScoredSample) -> str:
    words = {
        "AC": "solved",
        "WA": "wrong answer",
        "TLE": "too slow",
        "MLE": "too much memory",
        "OLE": "too much output",
        "RE": "raised",
        "CE": "no program",
    }
    tests = (
        f", {sample.passed} of {sample.total} tests pass"
        if sample.verdict != "AC" and sample.total > 1
        else ""
    )
    return (
        words.get(sample.verdict, sample.verdict)
        + tests
        + (", cut by length" if sample.cut else "")
    )
