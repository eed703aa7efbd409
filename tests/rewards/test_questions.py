"""Completions that are statements: mathematics and facts."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rewards.composite import Reward, score_answers
from rewards.extraction import extract_answer
from rewards.facts import exact, plain, token_f1
from rewards.judging import judge_questions
from rewards.question import Question, question_truth, task_from_ground_truth
from sandbox.protocol import Verdict

HALF = Question("q/1", "Half of one?", "math", ("\\frac{1}{2}",))


@pytest.mark.parametrize(
    ("text", "final_answer"),
    [
        ("so \\boxed{\\frac{1}{2}}.", "\\frac{1}{2}"),
        ("\\boxed{1} or \\boxed{2}", "2"),
        ("long\nthe answer is 42.", "42"),
        ("#### 7", "7"),
        ("**Answer:** 5", "5"),
        ("Answer: 1\nAnswer: 2", "2"),
        ("12", "12"),
        ("a\nb", ""),
        ("", ""),
        ("\\boxed{1", ""),
        ("so $\\boxed 5$.", "5"),
        ("so $x = \\boxed \\frac12$ as asked", "\\frac12"),
        ("so \\(\\boxed -3\\)", "-3"),
        ("It is \\boxed 1,234 in all.", "1,234"),
        ("\\boxed{5}, in \\boxed notation", "5"),
        ("$\\boxed{5}$ is in \\boxed as asked, so $x$ is 5.", "5"),
        ("$\\boxed{5}$. I use \\boxed. It costs $5.", "5"),
        ("It is so. The final answer is x^2", "x^2"),
        ("So it ends.\nThe answer is:\n\n**5**", "5"),
        ("Half of ten.\n### Final Answer\n5", "5"),
        ("a\n#### Final answer: 5", "5"),
        ("It is five.\n<answer>4</answer> <answer> 5\n</answer>", "5"),
        ("x = 4\n\\fbox{5}", "5"),
        ("So answer is consistent.\n✅ Final Answer: **5**", "5"),
        ("- > **Answer** → 5", "5"),
        ("Answer: `5`", "5"),
        ("So it is.\nThe answer is **5**.", "5"),
        ("x" * 400, ""),
    ],
)
def test_the_final_answer_is_extracted(text: str, final_answer: str) -> None:
    assert extract_answer(text) == final_answer


@given(st.text(st.sampled_from("answer is:=*# \n\\boxed{}1"), max_size=80))
def test_any_text_can_be_extracted_from(text: str) -> None:
    assert extract_answer(text) in text


def test_facts_are_compared_without_case_and_punctuation() -> None:
    assert exact(["the Danube"], "DANUBE!")
    assert not exact(["Danube"], "Danubes")
    assert not exact(["Danube"], "  ")
    assert token_f1(["the Danube river"], "Which river is it?", "Which river is it?") == 0.0
    assert token_f1(["Danube"], "Danube Rhine Elbe") == 0.5


@settings(max_examples=30)
@given(st.text(max_size=40))
def test_text_normalization_is_idempotent(text: str) -> None:
    assert plain(plain(text)) == plain(text)


def test_a_batch_of_questions_needs_no_sandbox() -> None:
    fact = Question("q/2", "Where?", "qa", ("here",))
    scores = score_answers(
        None, Reward(), [(HALF, "\\boxed{1/2}"), (fact, "Answer: there"), (fact, "a\nb")]
    )
    assert [score.verdict for score in scores] == [Verdict.AC, Verdict.WA, Verdict.WA]
    assert [score.value for score in scores] == pytest.approx([1.0, -0.8, -1.0])


def test_a_question_survives_a_round_trip_through_verl() -> None:
    assert task_from_ground_truth(question_truth(HALF)) == HALF
    free = replace(HALF, form="any")
    assert task_from_ground_truth(question_truth(free)) == free
    with pytest.raises(ValueError, match="'some'"):
        task_from_ground_truth(question_truth(HALF).replace("evaluated", "some"))


def test_the_allowed_form_of_an_answer_is_enforced() -> None:
    product = Question("q/3", "What is 37 times 43?", "math", ("1591",))
    assert judge_questions([(product, "\\boxed{37 \\times 43}")])[0].verdict is Verdict.WA
    assert (
        judge_questions([(replace(product, form="any"), "\\boxed{37 \\times 43}")])[0].verdict
        is Verdict.AC
    )
