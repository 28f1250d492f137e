"""Results in a notebook: short texts, escaped panels without record values, copies, pickles, margins beside numbers."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.errors import Unsupported
from sfumato.core.panel import OWNERS
from sfumato.data.schema import Column, HierarchySpec, Schema
from tests.report.test_escape import Tags
from tests.workflow.people import people, schema, table

MARKUP = '<img src=x onerror=alert(1)>\u202e"&'
SECRET = "Xanthippe-4711"


def secret_people(rows: int = 120) -> sf.Microdata:
    """People of whom each value of the diseases and names has the secret in it; dataset and a column are called by markup."""
    base = table(rows)
    renamed = base.set_column(5, MARKUP, pa.array([f"{SECRET} {value}" for value in base.column("disease").to_pylist()]))
    renamed = renamed.set_column(0, "name", pa.array([f"{SECRET} {row}" for row in range(rows)]))
    columns = dict(schema().columns)
    columns[MARKUP] = Column(role="sensitive", type="string", domain=(SECRET,), source="data")
    del columns["disease"]
    return sf.read(renamed, Schema(dataset=MARKUP, unit="record", columns=columns))


@cache
def results() -> dict[str, Any]:
    data = secret_people()
    release = sf.protect(data, [sf.KAnonymity(5)], sf.Lattice(suppression=0.1))
    session = sf.Session(data, budget=sf.PureDP(10), analyst=MARKUP)
    return {
        "Release": release,
        "Certificate": release.certificate,
        "Answer": session.sql("SELECT sex, COUNT(*) AS n FROM people GROUP BY sex", epsilon=1, keys={"sex": ["f", "m"]}),
        "Comparison": sf.compare(data, [sf.Mdav(k=5)], runs=1, cache=False, workers=1),
        "Profile": sf.inspect(data),
        "Schema": data.schema,
        "Session": session,
    }


OWNERS_ONLY = ("Release", "Comparison", "Profile")
KINDS = ("Release", "Certificate", "Answer", "Comparison", "Profile", "Schema", "Session")


@pytest.fixture
def values(owner_key: Path) -> dict[str, Any]:
    return results()


@pytest.mark.parametrize("kind", KINDS)
def test_a_text_is_one_short_line_without_a_record_value(kind: str, values: dict[str, Any]) -> None:
    for text in (repr(values[kind]), str(values[kind])):
        assert len(text) <= 500 and "\n" not in text and "\u202e" not in text and SECRET not in text
        assert text.startswith(f"{type(values[kind]).__name__}(")


@pytest.mark.parametrize("kind", KINDS)
def test_a_panel_is_escaped_has_no_record_value_and_marks_what_is_the_owners(kind: str, values: dict[str, Any]) -> None:
    page = values[kind]._repr_html_()
    seen = Tags()
    seen.feed(page)
    seen.close()
    assert f"<strong>{kind}</strong>" in page and SECRET not in page and "\u202e" not in page
    assert "img" not in seen.tags and "onerror" not in seen.tags and "script" not in seen.tags
    assert (OWNERS in page) is (kind in OWNERS_ONLY)


def test_a_release_shows_its_rows_nowhere_and_its_scores_below_the_mark(values: dict[str, Any]) -> None:
    page = values["Release"]._repr_html_()
    assert page.index("measured") < page.index(OWNERS) < page.rindex("loss")
    assert not any(str(zip_code) in page for zip_code in values["Release"].data.column("zip").to_pylist())


def test_columns_show_no_bounds_and_no_domain() -> None:
    column = Column(role="quasi", type="integer", bounds=(17, 90), source="data", hierarchy=HierarchySpec(cuts=(34.5,)))
    assert repr(column) == "Column(role='quasi', type='integer', hierarchy='cuts')"


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "Session"])
@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))])
def test_results_can_be_copied_and_pickled(kind: str, again: Callable[[Any], Any], values: dict[str, Any]) -> None:
    copied = again(values[kind])
    assert repr(copied) == repr(values[kind]) and copied._repr_html_() == values[kind]._repr_html_()


def test_a_copied_release_saves_and_verifies(values: dict[str, Any], tmp_path: Path, owner_key: Path) -> None:
    for number, release in enumerate((values["Release"], sf.protect(people(100), method="Mdav(k=5)"))):
        stored = pickle.dumps(release)
        copied = pickle.loads(stored)
        assert copied.data == release.data and copied.scores == release.scores
        copied.save(tmp_path / str(number))
        assert sf.verify(tmp_path / str(number)).accepted
        with pytest.raises(TypeError):
            copied.scores["loss"] = 0.0
    secret = owner_key.read_text("ascii").split()[-1]  # of the last release, which was made under this key
    assert len(secret) == 64 and secret.encode() not in stored and bytes.fromhex(secret) not in stored


def test_the_pickle_of_an_answer_holds_no_record(values: dict[str, Any]) -> None:
    answer = values["Answer"]
    stored = pickle.dumps(answer)
    assert SECRET.encode() not in stored and b"sfumato.engines.memory" not in stored and b"pyarrow" not in stored
    copied = pickle.loads(stored)
    assert copied.table == answer.table and copied.margins() == answer.margins() and copied.loss == answer.loss
    assert copied.outcome.result == answer.outcome.result and str(copied.explanation) == str(answer.explanation)


def test_margins_stand_beside_their_numbers() -> None:
    session = sf.Session(people(300), budget=sf.PureDP(10))
    answer = session.sql(
        "SELECT sex, COUNT(*) AS n, COUNT(*) AS n_margin FROM people GROUP BY sex", epsilon=1, keys={"sex": ["f", "m"]}
    )
    frame = answer.to_pandas()
    assert list(frame.columns) == ["sex", "n", "n_margin2", "n_margin", "n_margin_margin"]
    assert frame["n_margin2"].tolist() == answer.margins(0.95).column("n").to_pylist()
    assert answer.to_pandas(confidence=0.99)["n_margin2"].min() > frame["n_margin2"].max()
    assert frame["n"].tolist() == answer.table.column("n").to_pylist()


def test_a_release_in_an_engine_is_refused_in_words(tmp_path: Path) -> None:
    release = sf.protect(people(100), k=5, method=sf.Lattice(), destination=tmp_path / "out")
    assert copy.copy(release) is release and "Release" in release._repr_html_()
    with pytest.raises(Unsupported, match="save"):
        pickle.dumps(release)
