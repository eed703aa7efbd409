"""The report is one self-contained file with the same facts as its JSON."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from evaluation.benchmarks import heldout
from evaluation.promotion.gate import Decision
from evaluation.reports.facts import Link, ReportFacts
from evaluation.reports.plots import reward_curve
from evaluation.reports.report import changed_lines, provenance_picture, render, write_report
from problems.schema import Problem
from tests.browser import Browser
from tests.evaluation.report_facts import facts_of

OLD = [i % 3 == 0 for i in range(120)]
NEW = [i % 3 == 0 or i % 4 == 1 for i in range(120)]
NEW[0] = NEW[3] = NEW[6] = False


@pytest.fixture(scope="module")
def promoted() -> ReportFacts:
    return facts_of(OLD, NEW)


def test_the_page_fetches_nothing_and_is_small(promoted: ReportFacts, tmp_path: Path) -> None:
    page = write_report(promoted, tmp_path / "report of a run").read_text(encoding="utf-8")
    assert set(re.findall(r'(?:src|href)="([^"#]{1,26})', page)) == {"data:image/svg+xml;base64,"}
    assert not re.search(r"@import|url\(|<script|https?://", page)
    assert len(page) < 400_000
    assert all(len(uri) < 80_000 for uri in re.findall(r"base64,([^\"]*)", page))


def test_json_and_page_contain_the_same_facts(promoted: ReportFacts, tmp_path: Path) -> None:
    page = write_report(promoted, tmp_path).read_text(encoding="utf-8")
    summary = json.loads((tmp_path / "summary.json").read_text(encoding="utf-8"))
    assert summary["promoted"] is True
    assert summary["p_value"] < 0.01
    assert summary["headline"] in page
    assert (
        ReportFacts.model_validate({key: summary[key] for key in promoted.model_dump()}) == promoted
    )
    assert Decision.model_validate(summary["decision"]) == promoted.decision


def test_the_first_lines_describe_the_model_and_its_warm_up(
    promoted: ReportFacts,
) -> None:
    head = render(promoted).split("<section")[0]
    assert "made from scratch" in head
    assert "deliberate slips" in head


def test_missing_measurements_are_listed_with_their_reason(
    promoted: ReportFacts,
) -> None:
    page = render(promoted)
    assert promoted.not_measured
    assert all(each.reason in page for each in promoted.not_measured)
    assert "(0 of 164; 0.0 to 2.3)" in page
    assert "(0 of 161; 0.0 to 2.3)" in page


def test_a_refused_challenger_has_a_report() -> None:
    page = render(facts_of(NEW, OLD))
    assert "Not promoted" in page
    assert "Why it was not promoted" in page


def test_the_report_of_the_first_champion_has_no_comparison() -> None:
    page = render(facts_of(OLD, NEW, first=True))
    assert "First champion" in page
    assert "Champion against" not in page


def test_a_report_without_optional_parts_is_written(promoted: ReportFacts) -> None:
    empty: dict[str, Any] = {
        "funnel": (),
        "curve": None,
        "pass_rates": (),
        "groups": (),
        "examples": (),
        "benchmarks": (),
        "not_measured": (),
    }
    page = render(
        promoted.model_copy(
            update=empty
            | {
                "provenance": (),
                "stages": (),
                "peak_memory_gib": None,
                "version": None,
                "links": {},
            }
        )
    )
    assert "Completions, side by side" not in page
    assert "<img" not in page
    assert "<svg" not in page


def test_model_output_cannot_run_on_the_page(promoted: ReportFacts) -> None:
    hostile = promoted.examples[0].model_copy(
        update={"after": "<script>alert(1)</script>", "prompt": "<img src=x onerror=alert(1)>"}
    )
    page = render(promoted.model_copy(update={"examples": (hostile,)}))
    assert "<script" not in page
    assert "<img src=x" not in page
    assert "&lt;script&gt;" in page


def test_the_gain_and_its_interval_follow_the_headline(promoted: ReportFacts) -> None:
    head, compared = render(promoted).split("<section")[0], promoted.decision.comparison
    assert compared is not None
    assert f"{100 * compared.difference:+.1f} points, 95 % interval" in head
    assert "95 % interval" in render(facts_of(OLD, NEW, first=True)).split("<section")[0]


def test_every_task_that_changed_is_named(promoted: ReportFacts) -> None:
    page, compared = render(promoted), promoted.decision.comparison
    assert compared is not None
    assert compared.lost
    assert all(f"<code>{task}</code>" in page for task in (*compared.won, *compared.lost))


def test_missing_costs_are_reported_as_missing(
    promoted: ReportFacts,
) -> None:
    page = render(promoted)
    assert "881,010" in page
    assert "not counted" in page
    assert "No price is set" in page


def test_kl_is_plotted_only_if_measured(promoted: ReportFacts) -> None:
    assert ">KL</text>" in render(promoted)
    assert promoted.curve is not None
    assert "nats a token" not in render(
        promoted.model_copy(update={"curve": promoted.curve.model_copy(update={"figures": {}})})
    )


def test_the_provenance_picture_shows_every_artifact_and_source(
    promoted: ReportFacts,
) -> None:
    root = ElementTree.fromstring(provenance_picture(promoted.provenance))
    boxes = [text.text for text in root.iter("text") if text.get("class") is None]
    known = {link.name for link in promoted.provenance}
    assert sorted(filter(None, boxes)) == sorted(known)
    assert len(list(root.iter("path"))) == sum(
        source in known for link in promoted.provenance for source in link.made_from
    )


def test_the_provenance_picture_survives_hostile_names_and_cycles() -> None:
    odd = [
        Link(name="<script>", kind='"', content_hash="0" * 64, made_from=("b",)),
        Link(name="b", kind="x", content_hash="1" * 64, made_from=("<script>",)),
    ]
    svg = provenance_picture(odd)
    assert "<script" not in svg
    assert len(list(ElementTree.fromstring(svg).iter("rect"))) == 2


@pytest.mark.slow
def test_the_page_fits_a_phone_and_a_sheet_of_paper(promoted: ReportFacts, tmp_path: Path) -> None:
    page = write_report(promoted, tmp_path / "report")
    with Browser(tmp_path / "browser", width=420, height=900) as browser:
        browser.open(page.as_uri())
        assert browser.run("document.documentElement.scrollWidth") <= 420
        browser.pdf(tmp_path / "page.pdf")
    assert (tmp_path / "page.pdf").read_bytes().count(b"/Type /Page\n") >= 4


def test_examples_cover_won_lost_and_unsolved(promoted: ReportFacts) -> None:
    assert [e.outcome for e in promoted.examples] == ["won"] * 2 + ["lost"] * 2 + ["unsolved"] * 2


def test_only_a_visible_test_is_reported(sandbox: Any, problems: list[Problem]) -> None:
    from evaluation.sampling import CompletionOutput
    from tests.evaluation.judging import judge_completions

    wrong = CompletionOutput("```python\ndef solve(x):\n    return 'no'\n```", 5, False)
    hidden, shown = problems[0], replace(problems[1], visible_tests=1)
    samples, _ = judge_completions(heldout([hidden, shown]), [wrong, wrong], sandbox)
    first_failed = {s.task_id: s.first_failed for s in samples}
    assert first_failed[hidden.problem_id] == ""
    assert first_failed[shown.problem_id].startswith("assert solve(")


def test_changed_lines_are_marked_on_both_sides() -> None:
    old, new = changed_lines("a\nb\nc", "a\nB\nc\nd")
    assert old == [("a", False), ("b", True), ("c", False)]
    assert new == [("a", False), ("B", True), ("c", False), ("d", True)]


def test_the_contents_link_to_every_section(promoted: ReportFacts) -> None:
    page = render(promoted)
    sections = re.findall(r'<section id="([^"]+)"', page)
    assert len(sections) == len(set(sections)) == page.count("<section") > 5
    assert re.findall(r'<a href="#([^"]+)"', page) == sections


def test_the_level_of_the_gate_is_explained(promoted: ReportFacts) -> None:
    assert "LORD divides alpha, 5.0 %, over all gates" in render(promoted)


def test_the_axis_of_steps_ends_with_the_last_one() -> None:
    chart = reward_curve([(step, 0.5) for step in range(1, 143)], {})
    assert ">142<" in chart
    assert ">140<" not in chart  # too near to it
