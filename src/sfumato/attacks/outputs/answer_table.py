"""A model through a table of its answers, as a file about an attack names it.

`{"attack": {"name": "MembershipInModels"}, "published": {"answers": "answers.csv"}, "knowledge": {"training_loss": 0.3}}`.
The table has a row for each person asked: the true label, whether the model was trained on the person, and a confidence
under the name of every class. A model itself is never loaded: files that bring a model along can bring a program along.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sfumato.attacks.adversary import Beside
from sfumato.attacks.outputs import answered_model
from sfumato.attacks.outputs.answered_model import Answers
from sfumato.core.declared import build, require
from sfumato.core.errors import InputError, MissingColumn, ParameterError, all_at_once
from sfumato.core.texts import text_of

if TYPE_CHECKING:
    import pyarrow as pa

#: A number as programs write it; a code with leading zeros is none.
_NUMBER = re.compile(r"-?(0|[1-9]\d{0,14})(\.\d{1,15})?")
_IN_OR_OUT = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


@dataclass(frozen=True)
class AnswerFile:
    """Where answers are: a file, its columns of labels and of who was trained on, and of every class the column with the
    confidences (by default all columns that are left, each named after its class)."""

    answers: str
    label: str = "label"
    member: str = "member"
    confidences: Any = field(default=None)

    def __post_init__(self) -> None:
        for name in ("answers", "label", "member"):
            require(isinstance(getattr(self, name), str), f"{name} must be a text: the name of a file or a column")
        named = self.confidences
        if isinstance(named, (list, tuple)) and all(isinstance(name, str) for name in named):
            object.__setattr__(self, "confidences", {name: name for name in named})
        elif named is not None and not (isinstance(named, Mapping) and all(isinstance(name, str) for name in named.values())):
            raise ParameterError("confidences names columns: a list of them, or an object from classes to columns")


def shadow_place(place: AnswerFile, shadow: object) -> AnswerFile:
    """Where the answers of shadow models are: in columns called as in the table of the attacked model, unless said otherwise."""
    entries = {"answers": shadow} if isinstance(shadow, str) else shadow
    if not isinstance(entries, Mapping):
        raise InputError('shadow_answers must name a table: a text, or an object such as {"answers": "shadow.csv"}')
    usual = {"label": place.label, "member": place.member, "confidences": place.confidences}
    return build(AnswerFile, {**usual, **entries})


def answers_of(place: AnswerFile, beside: Beside) -> Answers:
    """Read a table of answers."""
    table = beside.table(place.answers, "table of answers", answered_model.MOST_CONFIDENCES, "A model is not loaded.")
    columns = place.confidences
    if columns is None:
        columns = {name: name for name in table.column_names if name not in (place.label, place.member)}
    classes = [written(str(name)) for name in columns]
    needed = (place.label, place.member, *columns.values())
    missing = [f"there is no column '{name[:60]}'" for name in dict.fromkeys(needed) if name not in table.column_names]
    all_at_once(MissingColumn, f"the table of answers '{place.answers[:200]}'", missing)
    confidences = [_numbers(table, name) for name in columns.values()]
    return Answers(
        classes,
        np.column_stack(confidences) if confidences else np.zeros((table.num_rows, 0)),
        _labels(table, place.label),
        _inside(table, place.member),
    )


def written(text: str) -> str:
    """One form for the name of a class, whoever wrote it: `True` and `true`, `1` and `1.0` are the same."""
    if text.lower() in ("true", "false"):
        return text.lower()
    return str(text_of(float(text))) if _NUMBER.fullmatch(text) else text


def _numbers(table: pa.Table, name: str) -> NDArray[np.float64]:
    import pyarrow as pa

    column = table.column(name)
    if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)) or column.null_count:
        raise InputError(
            f"the table of answers: the column '{name[:60]}' does not hold a confidence in every row. Name the columns that do "
            "under confidences, if the table has others."
        )
    numbers: NDArray[np.float64] = column.cast(pa.float64()).to_numpy()
    return numbers


def _texts(table: pa.Table, name: str) -> list[str | None]:
    """The texts of a column in one form; a column has few different ones."""
    encoded = table.column(name).combine_chunks().dictionary_encode()
    chunks = encoded.chunks if hasattr(encoded, "chunks") else [encoded]
    values: list[str | None] = []
    for chunk in chunks:
        texts = [None if value is None else written(str(text_of(value))) for value in chunk.dictionary.to_pylist()]
        values += [None if place is None else texts[place] for place in chunk.indices.to_pylist()]
    return values


def _labels(table: pa.Table, name: str) -> NDArray[Any]:
    labels = _texts(table, name)
    if None in labels:
        raise InputError(f"the table of answers: the column '{name[:60]}' misses a label; leave out records that have none")
    return np.array(labels, dtype=np.str_)


def _inside(table: pa.Table, name: str) -> NDArray[np.bool_]:
    marks = [None if text is None else _IN_OR_OUT.get(text.lower()) for text in _texts(table, name)]
    if None in marks:
        raise InputError(
            f"the table of answers: the column '{name[:60]}' must say of everybody whether the model was trained on them: true "
            "or false, 1 or 0, yes or no"
        )
    return np.array(marks, dtype=np.bool_)
