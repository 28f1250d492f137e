"""Every attack, on every kind of published thing: whatever it says it fits, it makes sense of."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato import attacks
from sfumato.attacks.adversary import OutputAttack, TableAttack
from sfumato.core.declared import declarations
from sfumato.core.registry import every
from sfumato.core.view import AnyAttack, View
from sfumato.data.masked import Masked
from sfumato.data.microdata import ReleasedTable
from tests.conformance.masks import CATEGORIES, NUMBERS, every_mask, example, people
from tests.conformance.methods import SEARCHES

ATTACKS: dict[str, type[AnyAttack]] = every("attack")
PARAMETERS: dict[str, list[dict[str, Any]]] = {
    "Averaging": [{"tolerance": 0.5}],
    "Homogeneity": [{}, {"attribute": "ill"}, {"attribute": "gone"}],
    "Similarity": [{}, {"attribute": "age"}],
    "RankWindow": [{}, {"p": 10}, {"columns": ["height"]}],
    "NoiseLikelihood": [{}, {"noise": "independent", "variance": 0.1}],
    "PartialKnowledge": [{"items": 1}, {"items": 1, "column": "terms"}, {"column": "town"}],
    "PseudonymTracking": [{}, {"observed": ["town"]}, {"pseudonym": "region"}],
    "Minimality": [{}, {"attribute": "ill"}, {"attribute": "age"}],
}
PEOPLE = people(60)
FEW = PEOPLE.table().select(["age", "town", "ill"])


def masks() -> Iterator[tuple[str, sf.masking.Mask]]:
    for name in every_mask():
        yield name, example(name)
        if name != "PartiallySynthetic":  # its example predicts by the stratum
            yield f"{name} in strata", dataclasses.replace(example(name), strata=("region",))
    swapped, noisy = sf.RankSwapping(10, columns=NUMBERS[:2]), sf.AdditiveNoise(0.2, columns=NUMBERS[1:])
    yield "two on a column", sf.Combined(masks=(swapped, noisy, sf.Pram(stay=0.8, columns=CATEGORIES)))
    yield "of its own columns", sf.Combined(masks=(sf.Mdav(4, columns=NUMBERS), sf.Pram(stay=0.8, columns=CATEGORIES)))


def tables() -> Iterator[tuple[str, View[Any, Any], Mapping[str, Any]]]:
    """Masked tables as a mask gives them and as an outsider has them, and releases of every search, with what an owner knows."""
    for name, mask in masks():
        try:
            outcome = mask.apply(PEOPLE, seed=1)
        except sf.errors.Unsupported:  # a stratum of these people is too small for it
            continue
        made: Masked = outcome.result
        truth = np.full(len(PEOPLE), -1)
        if made.rows is not None:
            truth[made.rows] = np.arange(len(made))
        told = {"method": outcome.method, "transparency": made.transparency, "claims": [{}] * bool(outcome.claimed)}
        held = {"register": PEOPLE.table(), "truth": truth}
        yield name, View(made, PEOPLE.schema), held
        yield f"{name}, published", View(ReleasedTable(made.table, PEOPLE.schema), PEOPLE.schema, told), held
    few = sf.read(FEW, PEOPLE.schema.replace(columns={name: PEOPLE.schema.columns[name] for name in FEW.column_names}))
    for name, search in SEARCHES.items():
        release = sf.protect(few, [sf.KAnonymity(2), sf.DistinctLDiversity(2, "ill")], search(), seed=1)
        yield name, release.view(), {"register": FEW, "truth": np.arange(60), "earlier": (release.view(),)}
    wages = View(PEOPLE.table().select(["town", "wage"]), sf.Schema.of(quasi=["town"], sensitive=["wage"]))
    nothing = View(pa.table({"x": [1]}), sf.Schema())
    for name, view in (("numbers that are sensitive", wages), ("nothing", nothing)):
        yield name, view, {"register": FEW, "truth": np.arange(60), "earlier": (view,)}


def table_with_blanks() -> sf.tables.PublishedTable:
    grid = sf.tables.TableCube.from_cells({("a",): 1, ("b",): 2, ("c",): 4}, [sf.tables.Dimension.flat("x", "abc")]).grid
    return sf.tables.PublishedTable(grid, None, 0, np.array([7, 0, 0, 4]), np.array([False, True, True, False]))


def outputs() -> Iterator[tuple[str, View[Any, Any]]]:
    yield "numbers", View([1.0, 2.0], None)
    yield "rows", View(np.ones((2, 3)), None)
    yield "words", View(["a", "b"], None)
    yield "no numbers", View([], None)
    yield "a mean and a count", View([attacks.Aggregate("mean", 3), attacks.Aggregate("count", 1)], None)
    yield "means", View([attacks.Aggregate("mean", 3)], None)
    yield "extremes", View([attacks.Extreme("age", 40)], None)
    yield "a version", View(attacks.MeanVersion([1.0], 3), None)
    yield "ratings", View(attacks.Ratings([0, 1], [0, 1]), None)
    below = {"claims": [{"guarantee": "Hidden", "parameters": {"support": 2}}]}
    yield "baskets", View(sf.data.Transactions.of([["a", "b"], ["a"], ["b"]]), None, below)
    yield "cells", View(attacks.ShownCells(["a", "b"], [1, 5], [3.0, 20.0]), None)
    yield "a table with blanks", View(table_with_blanks(), None)
    yield "a model", View(attacks.AnsweredModel(np.array(["no", "yes"])), None)


@cache
def all_tables() -> list[tuple[str, View[Any, Any], Mapping[str, Any]]]:
    return list(tables())


OUTPUTS = list(outputs())


def adversaries(name: str) -> list[AnyAttack]:
    return [ATTACKS[name](**parameters) for parameters in PARAMETERS.get(name, [{}])]


@pytest.mark.parametrize("name", sorted(name for name, kind in ATTACKS.items() if issubclass(kind, TableAttack)))
def test_whatever_an_attack_fits_it_does_not_refuse(name: str) -> None:
    """Nor does it fit something without being able to run on it, whatever else is published."""
    for attack in adversaries(name):
        for what, view, held in all_tables():
            assert not any(attack.fits(other) for _, other in OUTPUTS)
            if not attack.fits(view):
                continue
            assert set(attack.needs) <= set(held), what
            known = {each: held[each] for each in attack.needs}
            result = attack.run(view, attack.knowledge_from(known))
            assert 0 <= result.success <= 1 and result.attack == name, what


@pytest.mark.parametrize("name", sorted(ATTACKS))
def test_every_attack_fits_something_and_not_everything(name: str) -> None:
    every_view = [*(view for _, view, _ in all_tables()), *(view for _, view in OUTPUTS)]
    fitting = [attack.fits(view) for attack in adversaries(name) for view in every_view]
    assert any(fitting) and not all(fitting)


@pytest.mark.parametrize("name", sorted(name for name, kind in ATTACKS.items() if issubclass(kind, OutputAttack)))
def test_an_attack_on_outputs_fits_no_table(name: str) -> None:
    assert not any(attack.fits(view) for attack in adversaries(name) for _, view, _ in all_tables())


@pytest.mark.parametrize("name", sorted(ATTACKS))
def test_an_attack_says_what_it_needs_in_words_that_somebody_uses(name: str) -> None:
    """Options bring a register, who is who in it and earlier releases; the rest is what the class of its knowledge stores."""
    kind = ATTACKS[name]
    options = {"register", "truth", "earlier"}
    if issubclass(kind, OutputAttack) and hasattr(kind, "knows"):
        stored = {each.name: each.required for each in declarations(kind.knows)}
        assert {each for each, required in stored.items() if required} <= {*kind.needs, "members", "others"}
        assert {*kind.needs, *kind.helped_by} <= set(stored)
    elif issubclass(kind, TableAttack):
        assert set(kind.needs) <= options
    assert not set(kind.needs) & set(kind.helped_by) and set(kind.supposed) <= set(kind.helped_by)
