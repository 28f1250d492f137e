"""PRAM posterior: the published transition matrix tells which record, and which true category, is most likely.

A person's categories make every record so likely as the matrices say, relative to how likely it is from anybody's; a published
category makes every true one so likely as prior and matrix say. The ε of the matrices bounds both. Gouweleeuw, Kooiman,
Willenborg, de Wolf, "Post randomisation for statistical disclosure control: theory and implementation", Journal of Official
Statistics 14(4), 1998.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.attacks.masked.register_records import MaskPart, TransparencyAttack, agreeing, result_of, transparency_of
from sfumato.core.errors import InputError, Unsupported
from sfumato.core.ranges import ByName, Instance
from sfumato.core.view import AttackResult, Detail
from sfumato.data.masked import TableView
from sfumato.kernels.changes.recovered_frequencies import likeliest_frequencies
from sfumato.measures.risk.linkage.sides import Sides, by_stratum
from sfumato.measures.risk.linkage.transparency import published_steps
from sfumato.measures.risk.linkage.transparent_picks import pick_by_transitions

Real = NDArray[np.float64]

_ROUNDS = 200


@dataclass(frozen=True)
class PramPosterior(TransparencyAttack):
    """The adversary inverts the transition matrices by Bayes' rule.

    `transitions`: by column, {"labels": …, "outputs": …, "matrix": …} (default: as published). `knowledge`: `Register(table,
    truth=…)` with categories of the people before masking. Success: the share of people whose record has the largest posterior,
    at random among equal ones; unless `transitions` are given, among those that agree with the person in the quasi-identifiers
    that were not masked. Details: the ε of the matrices, and by column how often the likeliest true category is the true
    one, with and without looking at the published one.
    """

    transitions: Annotated[
        Mapping[str, Mapping[str, Any]] | None,
        ByName(Instance(Mapping, "labels, outputs and a matrix"), at_least=1),
        "labels, outputs and matrix of each column; as published where left out",
    ] = None

    def coherent(self) -> Iterable[str]:
        for name, law in (self.transitions or {}).items():
            if not _is_law(law):
                yield f"the transitions of '{name[:60]}' need labels, outputs, and a matrix: a row per label, a column per output"

    reads: ClassVar[tuple[str, ...]] = ("transitions",)

    def exploits(self, part: MaskPart) -> bool:
        """There are columns with one law everywhere and no other change."""
        return bool(_laws((part,))) and "by stratum" not in part.facts["transitions"]

    def refusal(self, view: TableView) -> InputError | None:
        """Matrices are published, the same in every stratum, or supposed."""
        if self.transitions is not None:
            return None
        published = [step.get("transitions") or {} for step in published_steps(transparency_of(view))]
        if any("by stratum" in laws for laws in published):
            return Unsupported("the transition matrices differ by stratum; attack each stratum by itself")
        missing = InputError("the release does not publish transition matrices; give them with PramPosterior(transitions=…)")
        return self.shared(view) or missing

    def attacked(self, sides: Sides, view: TableView, parts: Sequence[MaskPart]) -> AttackResult:
        """Take the likeliest record of everybody."""
        laws = self.transitions if self.transitions is not None else _laws(parts)
        strata = parts[0].strata if parts else ()
        if self.transitions is None:
            sides = agreeing(sides, view, strata)
        picked = by_stratum(sides, strata, lambda part: pick_by_transitions(part, laws))
        epsilon = {name: float(law.get("epsilon", _epsilon(law))) for name, law in laws.items()}
        values = {}
        for name, law in laws.items():
            if "matrix" in law and name in sides.released.column_names:
                values[name] = guessed_value(
                    np.array(law["matrix"], dtype=np.float64), _shown(sides.released, name, law["outputs"])
                )
        details: dict[str, Detail] = {
            "epsilon": float(sum(epsilon.values())),
            "epsilon_by_column": epsilon,
            "true_value_guessed": {name: after for name, (_, after) in values.items()},
            "true_value_guessed_blindly": {name: before for name, (before, _) in values.items()},
        }
        if picked.posterior is not None:
            details["mean_posterior"] = float(picked.posterior.mean())
        how = f"taking the record that the transition matrices of {len(laws)} column{'s' * (len(laws) != 1)} make most likely"
        return result_of("PramPosterior", sides, picked, how, details)


def _is_law(law: Mapping[str, Any]) -> bool:
    """Whether it is a matrix with its labels or, as published for very many categories, how likely each of them stays."""
    try:
        if "matrix" not in law:
            return 0 <= float(law["stay"]) <= 1 and int(law["categories"]) >= 1
        matrix = np.array(law["matrix"], dtype=np.float64)
        return matrix.shape == (len(law["labels"]), len(law["outputs"])) and bool(np.isfinite(matrix).all())
    except (KeyError, TypeError, ValueError, OverflowError):
        return False


def _laws(parts: Sequence[MaskPart]) -> dict[str, Mapping[str, Any]]:
    """The matrices of columns, or of columns that changed together, that nothing but PRAM has changed."""
    laws: dict[str, Mapping[str, Any]] = {}
    for part in parts:
        published = part.facts["transitions"]
        laws |= {name: law for name, law in published.items() if not part.shares.intersection((name, *name.split(" × ")))}
    return laws


def guessed_value(matrix: Real, shown: Real) -> tuple[float, float]:
    """How often the likeliest true category is right: by the prior alone, and with the published category.

    The prior comes from the published frequencies by expectation maximisation.
    """
    observed = shown / max(float(shown.sum()), 1.0)
    prior = likeliest_frequencies(observed, matrix, rounds=_ROUNDS, settled=0.0)
    joint = prior[:, None] * matrix
    return float(prior.max()), float(joint.max(axis=0).sum())


def _shown(released: Any, name: str, outputs: list[Any]) -> Real:
    from sfumato.data.texts.values import CodedText

    coded = CodedText.of(released.column(name))
    place = {label: position for position, label in enumerate(outputs)}
    counts = np.bincount(coded.codes[coded.codes >= 0], minlength=len(coded.values))
    totals = np.zeros(len(outputs))
    for label, count in zip(coded.values.to_pylist(), counts.tolist(), strict=True):
        if label in place:
            totals[place[label]] += count
    return totals


def _epsilon(law: Mapping[str, Any]) -> float:
    from sfumato.kernels.changes.channel import Channel

    return Channel(law["matrix"]).epsilon()
