"""An attack, what was published and what the adversary knows, from one JSON file: a game.

`{"attack": {"name": "Reconstruction"}, "published": [2, 1], "knowledge": {"members": [[1, 1], [0, 1]], "truth": [1, 1]}}`.
Names are looked up in a table; nothing is imported because the file says so. Of a model the file names a table of answers,
of a release its folder.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from sfumato import attacks
from sfumato.core.errors import InputError, ParameterError, SfumatoError, SourceError
from sfumato.core.params import build
from sfumato.core.plain_files import read_plain
from sfumato.core.view import View
from sfumato.data.schema import Schema
from sfumato.workflow import attacking_releases, named
from sfumato.workflow.attacking_models import asked_model
from sfumato.workflow.attacking_tables import named_table
from sfumato.workflow.scoring import plain_result

#: A file of answers larger than this is not read.
MOST_BYTES = 1 << 28
#: A table of people with more cells is not read, and more answers about them are not intersected.
MOST_CELLS, MOST_ANSWERS = 50_000_000, 10_000
_PARTS = {"attack", "published", "knowledge"}
#: What was published, what is known and the folder of the file that says both, as a view (or its result) and an attack's
#: knowledge.
Form = Callable[[Any, Mapping[str, Any], Path], tuple[Any, Any]]


def attack_outputs(path: str | Path) -> dict[str, Any]:
    """Run the attack that a JSON file describes; the result is rates and counts, never a value."""
    content = _content(Path(path))
    given = content["attack"]
    adversary = named.attack(given if isinstance(given, (str, Mapping)) else "")
    name = type(adversary).__name__
    if name not in _FORMS:
        raise InputError(
            f"{name} cannot be described by a file: pass the folder of the release and a register (--with) or other releases "
            f"(--earlier). Files describe: {', '.join(sorted(_FORMS))}."
        )
    try:
        published, known = _FORMS[name](content["published"], _mapping(content["knowledge"], "knowledge"), Path(path).parent)
        view = published if isinstance(published, View) else View(published, Schema(), name="outputs")
        result = adversary.run(view, known)
    except SfumatoError:
        raise
    except (TypeError, ValueError, LookupError, ArithmeticError, AttributeError) as error:
        # what a file describes may be of any shape, and its numbers may be people's: none of them is repeated
        raise InputError(
            f"'{path}' does not describe a game of {name}: shapes or kinds of its values do not fit ({type(error).__name__})"
        ) from None
    return {**plain_result(result), "details": dict(result.details)}


def _content(path: Path) -> Mapping[str, Any]:
    try:
        content = json.loads(read_plain(path, limit=MOST_BYTES))
    except OSError as error:
        raise SourceError(f"'{path}' cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise InputError(f"'{path}' is not JSON") from None
    if not isinstance(content, dict) or set(content) != _PARTS:
        raise InputError(f"'{path}' must be a JSON object with exactly: {', '.join(sorted(_PARTS))}")
    return content


def _mapping(value: Any, what: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise InputError(f"{what} must be an object")
    return value


def _aggregates(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise InputError('published must be a list of aggregates, such as {"kind": "mean", "value": 12.5}')
    return [build(attacks.Aggregate, _mapping(entry, "an aggregate")) for entry in value]


def _extremes(published: Any, known: Mapping[str, Any], folder: Path) -> tuple[Any, Any]:
    """Extremes of a hidden group, and the table of everybody who may be in it."""
    if not isinstance(published, list) or not 0 < len(published) <= MOST_ANSWERS:
        raise InputError(
            f"published must be a list of 1 to {MOST_ANSWERS:,} extremes, such as "
            '{"column": "age", "value": 40, "which": "least"}'
        )
    answers = [build(attacks.Extreme, _mapping(entry, "an extreme")) for entry in published]
    place = known.get("people")
    if set(known) != {"people"} or not isinstance(place, str):
        raise InputError('knowledge must name a table of everybody, and that alone: {"people": "people.csv"}')
    return answers, named_table(folder / place, "table of people", MOST_CELLS)


def _version(value: Any) -> Any:
    model = _mapping(value, "a version of a model")
    return build(attacks.MeanVersion if "means" in model else attacks.RegressionVersion, model)


def _membership(known: Mapping[str, Any]) -> Any:
    """People are texts here, because the keys of a JSON object are."""
    groups = known.get("groups")
    if not isinstance(groups, list) or not all(isinstance(group, list) for group in groups):
        raise ParameterError("Membership: groups must be a list of lists of people")
    return build(attacks.Membership, {**known, "groups": [[str(person) for person in group] for group in groups]})


def _earlier(known: Mapping[str, Any]) -> Any:
    places = _mapping(known.get("known", {}), "known")
    if not all(place.isdecimal() for place in places):
        raise ParameterError("EarlierVersion: known maps places of the record (0, 1, …) to values")
    return attacks.EarlierVersion(
        **{
            **{name: value for name, value in known.items() if name in ("joined", "truth")},
            "model": _version(known.get("model")),
            "known": {int(place): value for place, value in places.items()},
        }
    )


def _questions(known: Mapping[str, Any]) -> Any:
    try:
        members = np.asarray(known.get("members"), dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("members must be a matrix of numbers: a row per question, a column per person") from None
    return build(attacks.KnownQuestions, {**known, "members": members})


def _built(kind: type[Any]) -> Callable[[Mapping[str, Any]], Any]:
    return lambda given: build(kind, given)


def _as_it_is(value: Any) -> Any:
    return value


def _apart(published: Callable[[Any], Any], known: Callable[[Mapping[str, Any]], Any]) -> Form:
    """What was published and what is known are read each on its own, from the file alone."""
    return lambda value, knowledge, _folder: (published(value), known(knowledge))


#: How what was published and what is known are read, by attack.
_FORMS: dict[str, Form] = {
    "AggregateDifferencing": _apart(_aggregates, _membership),
    "AnswerIntersection": _extremes,
    "Averaging": _apart(_as_it_is, _built(attacks.NoiseKnown)),
    "MembershipInAggregates": _apart(_as_it_is, _built(attacks.ReferencePeople)),
    "MembershipInModels": asked_model,
    "ModelDifferencing": _apart(_version, _earlier),
    "OutlierInference": _apart(_as_it_is, _built(attacks.TypicalPeople)),
    "Reconstruction": _apart(_as_it_is, _questions),
    "Scoreboard": _apart(lambda value: build(attacks.Ratings, _mapping(value, "published")), _built(attacks.KnownItems)),
    **attacking_releases.FORMS,
}
