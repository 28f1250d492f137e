"""Answers to the checklist: given in Python or a recipe, shown on both cards, unknown questions refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import sfumato as sf
from sfumato.core.errors import RecipeError
from sfumato.report.checklist import QUESTIONS, answers_of
from sfumato.report.content import Answer
from sfumato.workflow.recipe import Recipe
from tests.workflow.people import release
from tests.workflow.test_recipe import RECIPE, written


def test_without_answers_every_question_is_open() -> None:
    made = release()
    assert made.card("owner").lower().count("open: ") == len(QUESTIONS)
    assert not any(question in made.card() for question in QUESTIONS.values())


def test_answers_are_shown_to_the_owner_alone(tmp_path: Path) -> None:
    answers = {
        **dict.fromkeys(QUESTIONS, True),
        "custody": {"given": False, "note": "the rule is being written"},
        "informed": Answer(True, "letter of 3 May"),
    }
    made = release(answers=answers)
    made.save(tmp_path / "out")
    shown = (tmp_path / "out" / "owner" / "card.html").read_text().lower()
    assert "open: " not in shown
    assert "answered with no: " in shown and "the rule is being written" in shown
    assert "letter of 3 may" in shown
    public = "".join((tmp_path / "out" / "public" / name).read_text().lower() for name in ("card.html", "certificate.json"))
    assert "the rule is being written" not in public and "letter of 3 may" not in public
    assert sf.verify(tmp_path / "out").holds


def test_a_note_cannot_carry_markup() -> None:
    page = release(answers={"roles": {"given": False, "note": "<script>alert(1)</script>"}}).card("owner")
    assert "<script>" not in page and "&lt;script&gt;" in page


def test_a_recipe_answers_and_is_kept(tmp_path: Path) -> None:
    given = '\n[answers]\nroles = true\nretention = { given = true, note = "31 December 2030" }\n'
    made = Recipe.load(written(tmp_path, RECIPE + given)).run()
    assert made.owner.answers == {"roles": Answer(True), "retention": Answer(True, "31 December 2030")}
    assert Recipe.load(tmp_path / "out" / "owner" / "recipe.toml").answers["roles"] is True


def test_unknown_questions_and_odd_answers_are_refused_at_once(tmp_path: Path) -> None:
    given = '\n[answers]\nroles = "no"\nretentoin = true\ninformed = { given = 1 }\ncustody = { note = "x" }\n'
    with pytest.raises(RecipeError) as caught:
        Recipe.load(written(tmp_path, RECIPE + given))
    told = str(caught.value)
    assert "does not ask 'retentoin'" in told
    for question in QUESTIONS:
        assert question in told
    assert told.count("answer with true or false") == 3


@pytest.mark.parametrize("entry", ["yes", 1, None, {"given": True, "because": "x"}, {"given": True, "note": "x" * 501}])
def test_an_answer_is_yes_or_no_with_a_note(entry: Any) -> None:
    with pytest.raises(RecipeError, match="roles: answer with true or false"):
        answers_of({"roles": entry})
    with pytest.raises(RecipeError, match="roles"):
        release(answers={"roles": entry})
