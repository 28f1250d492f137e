"""Whatever has a name is a value: it can be copied, sent elsewhere, written down and made again, whatever it was told."""

from __future__ import annotations

import copy
import datetime
import json
import pickle
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import tomlkit

from sfumato.core import registry
from sfumato.core.declared import build, declarations, parameters
from sfumato.core.errors import ParameterError
from tests.conformance.examples import examples

#: What is made with parameters; content is made of data.
MADE = sorted(set(registry.kinds()) - {"content"})
#: Recipes, certificates or ledgers hold what these are told.
WRITTEN = ("search", "mask", "guarantee", "loss", "algorithm", "attack", "measure")
DAY = datetime.date(1995, 2, 3)
STRANGE = (
    DAY,
    datetime.datetime(1995, 2, 3, 4, 5),
    datetime.time(4, 5),
    Fraction(1, 2),
    Decimal("0.5"),
    np.float32(0.5),
    np.int64(3),
)
HUGE = (10**5000, -(10**5000), Fraction(10**5000, 3), Decimal("1e5000"))


def _told(made: Any) -> dict[str, Any]:
    return {field.name: getattr(made, field.name) for field in fields(made) if field.init}


def _ranged(made: Any) -> list[str]:
    """The parameters of which not every value will do."""
    return [each.name for each in declarations(type(made)) if each.range is not None]


def _each(kind: str) -> Iterator[tuple[str, Any]]:
    for name, made in examples(kind).items():
        if is_dataclass(made):
            yield name, made


@pytest.mark.parametrize("kind", MADE)
def test_everything_can_be_copied_and_sent_elsewhere(kind: str) -> None:
    count = 0
    for name, made in _each(kind):
        assert copy.copy(made) == copy.deepcopy(made) == made, name
        assert pickle.loads(pickle.dumps(made)) == made, name
        count += 1
    assert count == len(registry.every(kind)) > 0


@pytest.mark.parametrize("kind", MADE)
@pytest.mark.parametrize(("ours", "theirs"), [(int, np.int64), (int, np.int32), (float, np.float64), (float, np.float32)])
def test_numbers_of_numpy_are_taken_wherever_those_of_python_are(kind: str, ours: type, theirs: Callable[[Any], Any]) -> None:
    for name, made in _each(kind):
        told = _told(made)
        for parameter in _ranged(made):
            value = told[parameter]
            if type(value) is ours and ours(theirs(value)) == value:
                again = type(made)(**{**told, parameter: theirs(value)})
                assert (again, repr(again)) == (made, repr(made)), (name, parameter)


@pytest.mark.parametrize("kind", WRITTEN)
def test_whatever_is_taken_can_be_written_and_made_again(kind: str) -> None:
    taken = 0
    for name, made in _each(kind):
        told = _told(made)
        for parameter in _ranged(made):
            for value in STRANGE:
                for given in (value, [value], {"age": value}, {"age": [value]}):
                    try:
                        again = type(made)(**{**told, parameter: given})
                    except ParameterError:
                        continue
                    written = parameters(again)
                    for read in (json.loads(json.dumps(written)), tomlkit.parse(tomlkit.dumps(written)).unwrap()):
                        assert parameters(build(type(made), read)) == written, (name, parameter, value)
                    taken += 1
    assert taken > 0


@pytest.mark.parametrize("kind", MADE)
def test_a_number_of_thousands_of_digits_is_refused_in_words(kind: str) -> None:
    for name, made in _each(kind):
        told = _told(made)
        for parameter in _ranged(made):
            value = told[parameter]
            if isinstance(value, (Mapping, int, float, Fraction)):
                for given in HUGE:
                    with pytest.raises(ParameterError) as refusal:
                        type(made)(**{**told, parameter: {"age": given} if isinstance(value, Mapping) else given})
                    assert len(str(refusal.value)) < 1000, (name, parameter)
