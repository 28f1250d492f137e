"""Every parameter that takes numbers, of everything that can be found, at numbers that no machine word holds: refused when it
is made, or it works."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.attacks import Register
from sfumato.core import registry
from sfumato.core.declared import declarations
from sfumato.core.errors import ParameterError, SfumatoError
from sfumato.core.ranges import Because, ByName, Each, Either, Limit, Number, Range, Whole
from sfumato.core.view import View
from sfumato.data.schema import Schema
from tests.conformance.examples import NEEDED
from tests.conformance.masks import columns_for, example, people

LARGE = (2**31, 2**63, 2**64, 10**30)

#: Other parameters that a parameter needs beside it.
BESIDE: Mapping[tuple[str, str], Mapping[str, Any]] = {
    ("Cbfs", "l"): {"sensitive": ["ill"]},
    ("Cbfs", "p"): {"sensitive": ["ill"]},
    ("Cbfs", "c"): {"sensitive": ["ill"], "l": 2, "diversity": "recursive"},
    ("TopBottomCoding", "top"): {"by": "value"},
    ("TopBottomCoding", "bottom"): {"by": "value", "top": None},
    ("Pram", "epsilon"): {"stay": None},
}
#: Fewer people than those of the examples of masks want less.
SMALLER: Mapping[str, dict[str, Any]] = {"TermGeneralisation": {"k": 5}}


def takes_numbers(allowed: Range | None) -> bool:
    """Whether numbers stand anywhere in a range."""
    if isinstance(allowed, (Whole, Number, Limit)):
        return True
    inner = (
        allowed.ranges if isinstance(allowed, Either) else [allowed.of] if isinstance(allowed, (Each, ByName, Because)) else []
    )
    return any(takes_numbers(each) for each in inner)


def forms(number: float) -> tuple[Any, ...]:
    """The number where a number, a list or a table of names is wanted."""
    return number, [number], {"age": number}


@cache
def table() -> sf.Microdata:
    """A few people, whose ages and illnesses are declared."""
    given = people(40, seed=3)
    columns = dict(given.schema.columns)
    columns["age"] = columns["age"].model_copy(update={"bounds": (18.0, 90.0), "source": "declared"})
    columns["ill"] = columns["ill"].model_copy(update={"domain": ("no", "flu", "cold"), "source": "declared"})
    small = pa.Table.from_batches(list(given.relation.batches(["age", "town", "region", "ill", "wage", "terms"])))
    return sf.read(small, given.schema.replace(columns={name: columns[name] for name in small.column_names}, unit="record"))


@cache
def declared() -> sf.Microdata:
    """People of whom everything is declared, for private algorithms."""
    columns = {name: table().schema.columns[name] for name in ("age", "ill")}
    rows = table().table().select(["age", "ill"])
    who = pa.array([f"p{number}" for number in range(rows.num_rows)])
    unit = table().schema.columns["region"].model_copy(update={"role": "unit", "source": "declared"})
    return sf.read(rows.append_column("who", who), Schema(dataset="declared", columns={**columns, "who": unit}))


@cache
def released() -> tuple[sf.Release, sf.Release]:
    """A recoded and a masked release of them."""
    return sf.protect(table(), sf.KAnonymity(2)), sf.mask(table(), sf.Mdav(3, columns=("wage",)))


def _measure(measure: Any) -> None:
    if measure.masked:
        sf.mask(table(), sf.Mdav(3, columns=("wage",)), utility=[measure], risk=())
    else:
        sf.protect(table(), sf.KAnonymity(2), utility=[measure], population=table().table())


def _attack(attack: Any) -> None:
    """Alone or with a register; those that want something else say so."""
    for release in released():
        view = View(release.content.released, release.schema, release.certificate.to_mapping())
        known = Register(table().table()) if "register" in attack.needs else None
        with contextlib.suppress(SfumatoError):
            attack.run(view, known)


RUNS: Mapping[str, Callable[[Any], object]] = {
    "guarantee": lambda made: sf.protect(table(), made, population=table().table()),
    "search": lambda made: sf.protect(table(), sf.KAnonymity(2), made),
    "mask": lambda made: sf.protect(table(), (), made),
    "measure": _measure,
    "attack": _attack,
    "algorithm": lambda made: made.run(declared()),
}


def _example(kind: str, name: str) -> Mapping[str, Any]:
    if kind != "mask" or name == "Combined":
        return NEEDED.get(name, {})
    made = example(name, tuple(each for each in columns_for(name) if each in table().column_names))
    return {each.name: getattr(made, each.name) for each in declarations(type(made))} | SMALLER.get(name, {})


CASES = [
    (kind, name, each.name)
    for kind in RUNS
    for name, cls in registry.every(kind).items()
    for each in declarations(cls)
    if takes_numbers(each.range)
]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "name"), sorted({case[:2] for case in CASES}))
def test_the_examples_run(kind: str, name: str) -> None:
    RUNS[kind](registry.find(kind, name)(**_example(kind, name)))


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "name", "parameter"), CASES)
def test_a_large_number_is_refused_when_it_is_given_or_works(kind: str, name: str, parameter: str) -> None:
    given = {**_example(kind, name), **BESIDE.get((name, parameter), {})}
    for number in LARGE:
        for value in forms(number):
            try:
                made = registry.find(kind, name)(**{**given, parameter: value})
            except ParameterError:
                continue
            if number >= 2**63:  # smaller ones fit
                with contextlib.suppress(SfumatoError):  # what cannot be reached is said so
                    RUNS[kind](made)


def test_a_whole_number_ends_where_kernels_do_and_says_so() -> None:
    for number in LARGE:
        with pytest.raises(
            ParameterError, match="^KAnonymity: k must be a whole number of at least 1, and at most 2,147,483,647$"
        ):
            sf.KAnonymity(number)
    assert sf.KAnonymity(2**31 - 1).k == 2**31 - 1
