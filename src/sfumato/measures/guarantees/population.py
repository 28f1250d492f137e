"""Measuring k-map and δ-presence against a population table.

A person of the population belongs to every released class whose shown values cover the person's raw
ones. One bit per person and shown value makes the match of a class an intersection of bit sets. Sweeney,
"Computational disclosure control", 2001; Nergiz, Atzori, Clifton, SIGMOD 2007.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.core.errors import InputError
from sfumato.core.guarantees.base import TOLERANCE, ClassGuarantee
from sfumato.core.guarantees.population import DeltaPresence, KMap
from sfumato.data.hierarchies import hierarchy_builders
from sfumato.data.hierarchies.hierarchy import ROOT
from sfumato.measures.guarantees.classes import Classes, CodedColumn, Integers, require_columns, tally
from sfumato.measures.guarantees.cover import covered, interval_of
from sfumato.measures.guarantees.examined import (
    ExaminedTable,
    Measurement,
    conclude,
    largest,
    shown_number,
    smallest,
)
from sfumato.measures.guarantees.grouped import GroupedTable
from sfumato.measures.guarantees.thresholds import at_most, ratios

Bits = NDArray[np.uint8]


def measure_k_map(examined: ExaminedTable, guarantee: KMap) -> Measurement:
    """The fewest records of the population behind a released class."""
    classes = examined.classes()
    people, _ = matches(examined, guarantee, classes)
    fewest = int(people.min()) if people.size else smallest(people)
    explanation = (
        f"The class with the fewest matches in the population has {shown_number(fewest)} records; {guarantee.k:,} are promised."
    )
    return conclude(guarantee, classes, fewest, people < guarantee.k, explanation)


def measure_delta_presence(examined: ExaminedTable, guarantee: DeltaPresence) -> Measurement:
    """The largest and the smallest chance that a person of the population is in the release."""
    classes = examined.classes()
    people, uncovered = matches(examined, guarantee, classes)
    shares = ratios(classes.sizes, people)
    high = largest(shares)
    low = 0.0 if uncovered else smallest(shares)
    too_sure = ~at_most(classes.sizes, people, guarantee.maximum)
    too_absent = shares < guarantee.minimum - TOLERANCE
    failing = too_sure | too_absent
    explanation = (
        "The chance that a person of the population is in the release lies between "
        f"{shown_number(low)} and {shown_number(high)}; "
        f"between {guarantee.minimum:.6g} and {guarantee.maximum:.6g} is promised. {uncovered:,} "
        "people of the population match no released class."
    )
    measured = conclude(guarantee, classes, high, failing, explanation, also={"smallest chance": low})
    if uncovered and guarantee.minimum > 0:
        return replace(measured, holds=False)
    return measured


def against_population(examined: ExaminedTable) -> tuple[float, float, float]:
    """What a table keeps against its population without a promise: the fewest matches of a class, and the
    smallest and the largest chance of being in the table.
    """
    classes = examined.classes()
    people, uncovered = matches(examined, KMap(1), classes)
    shares = ratios(classes.sizes, people)
    return smallest(people), 0.0 if uncovered else smallest(shares), largest(shares)


def matches(examined: ExaminedTable, guarantee: ClassGuarantee, classes: Classes) -> tuple[Integers, int]:
    """People of the population per released class, and how many people match no class."""
    if examined.population is None:
        raise InputError(f"{guarantee.name} compares with a population table, which was not given. Pass population=.")
    rows, counts = _people(examined)
    require_columns(rows, classes.quasi)
    bits, texts_of_class = [], []
    for name in classes.quasi:
        shown = examined.column(name)
        bits.append(_bits(examined, name, shown))
        texts_of_class.append(shown.codes[classes.first])
    people = np.zeros(len(classes), dtype=np.int64)
    covered = np.zeros((rows.num_rows + 7) // 8, dtype=np.uint8)
    for c in range(len(classes)):
        matched = bits[0][int(texts_of_class[0][c])]
        for column in range(1, len(bits)):
            matched = matched & bits[column][int(texts_of_class[column][c])]
        people[c] = _counted(matched, counts)
        covered |= matched
    everybody = rows.num_rows if counts is None else int(counts.sum())
    return people, everybody - _counted(covered, counts)


def texts_of_nobody(examined: ExaminedTable) -> list[str]:
    """What is to be said of columns whose texts no person has and no hierarchy explains: they are compared as they are."""
    said = []
    for name in examined.schema.quasi:
        if examined.described(name).hierarchy is not None:
            continue
        rows, _ = _people(examined)
        require_columns(rows, [name])
        people = set(CodedColumn.of(rows.column(name)).values)
        shown = [text for text in examined.column(name).values if text not in (None, ROOT) and text not in people]
        unknown = sum(interval_of(str(text)) is None for text in shown)
        if unknown:
            texts = "text" if unknown == 1 else "texts"
            said.append(
                f"column '{name}' shows {unknown:,} {texts} that no person of the population has, and the schema has no "
                "hierarchy that says what they stand for, so they were matched with nobody. If values were generalised, pass the "
                "schema with their hierarchies: that of the original, or release.schema."
            )
    return said


def _people(examined: ExaminedTable) -> tuple[pa.Table, Integers | None]:
    """The population, and how many people each of its rows stands for."""
    population: Any = examined.population
    return (population.table, population.counts) if isinstance(population, GroupedTable) else (population, None)


def _counted(bits: Bits, counts: Integers | None) -> int:
    """People whose bits are set."""
    if counts is None:
        return int(np.bitwise_count(bits).sum(dtype=np.int64))
    return int(counts[np.unpackbits(bits, count=counts.size).view(np.bool_)].sum())


def _bits(examined: ExaminedTable, name: str, shown: CodedColumn) -> list[Bits]:
    """For each shown text one bit per row of the population: does it cover the row's value?"""
    rows, counts = _people(examined)
    raw = CodedColumn.of(rows.column(name))
    column = examined.schema.columns.get(name)
    tree = None
    if column is not None and column.hierarchy is not None:
        people = tally(raw.codes, len(raw.values), counts).tolist()
        tree = hierarchy_builders.build(name, column, raw.values, people, examined.schema.folder)
    return [np.packbits(covered(text, raw.values, tree)[raw.codes]) for text in shown.values]
