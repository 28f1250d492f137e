"""How useful and how safe a release is: measures and attacks run on what was published.

They are built and checked before anything is computed, so that a misspelt parameter costs no search.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from sfumato.attacks.tables.classes import ABOUT_SHOWN_VALUES
from sfumato.core import registry
from sfumato.core.errors import ParameterError, SfumatoError, Unsupported, all_at_once
from sfumato.core.plain_data import Plain
from sfumato.core.progress import Progress
from sfumato.core.view import AnyAttack, AnyMeasure, Attack, AttackResult, Measure, Score, View
from sfumato.data.microdata import ReleasedTable, ShownValue
from sfumato.report.wording import attack_in_words

if TYPE_CHECKING:
    from sfumato.anonymity.search.base import Search
    from sfumato.data.class_table import ClassTable
    from sfumato.data.microdata import Microdata
    from sfumato.data.recoding import Recoding
    from sfumato.data.schema import Schema
    from sfumato.masking.base import Mask


#: A measure by its key, by its key and parameters, or as a value.
Measured = str | Mapping[str, Any] | AnyMeasure
#: An attack by its name, by its name and parameters, or as a value.
Attacked = str | Mapping[str, Any] | AnyAttack


_OTHER_VALUES = (
    "it counts what was generalised or suppressed, and this mask puts other values in place of the true ones; information_loss "
    "measures what a mask changes"
)


@dataclass(frozen=True)
class Checks:
    """What is measured besides the guarantees: measures of use, then of risk, and attacks."""

    measures: tuple[AnyMeasure, ...] = ()
    attacks: tuple[AnyAttack, ...] = ()
    risks: int = 0  # how many of the last measures measure risk
    #: Whether measures of use, and those of risk, are the usual ones that nobody asked for, and may be impossible.
    usual: tuple[bool, bool] = (False, False)

    @classmethod
    def of(
        cls,
        utility: Measured | Iterable[Measured] | None,
        risk: Measured | Iterable[Measured] | None,
        attacks: Attacked | Iterable[Attacked],
        *,
        method: Search | Mask,
        published: Schema,
        population: Microdata | None,
    ) -> Checks:
        """Build what was asked for, or is usual for the method; every fault is reported at once. `published` describes the
        columns of the release, `population` is the one that measures of risk compare with where they name no other.
        """
        faults: list[str] = []
        measures: list[AnyMeasure] = []
        useful = 0
        usual_use, usual_risk = method.usual_measures
        kinds = (("utility", usual_use if utility is None else utility), ("risk", usual_risk if risk is None else risk))
        for where, entries in kinds:
            useful = len(measures)
            for entry in _each(entries):
                try:
                    measure = _with_population(registry.make("measure", entry), population)
                    if lacking := measure.lacks(published):
                        raise ParameterError(lacking)
                except SfumatoError as error:
                    faults.append(f"{where}: {error}")
                    continue
                measures.append(measure)
        adversaries: list[AnyAttack] = []
        for each in _each(attacks):
            try:
                adversaries.append(registry.make("attack", each))
            except SfumatoError as error:
                faults.append(f"attacks: {error}")
        all_at_once(ParameterError, "protect", faults)
        return cls(tuple(measures), tuple(adversaries), len(measures) - useful, (utility is None, risk is None))


@dataclass(frozen=True)
class Checked:
    """What was measured: scores, which of them are risks, what could not be measured, and how far attacks got."""

    scores: tuple[Score, ...] = ()
    risks: tuple[str, ...] = ()
    unmeasured: tuple[str, ...] = ()
    attacks: tuple[AttackResult, ...] = ()

    @property
    def stated_attacks(self) -> tuple[Plain, ...]:
        """The results as a certificate states them: what an attack found stays with the owner in its own words, which nobody
        could tell from a stranger's, and so does an attack that only its owner knows."""
        return tuple(_stated(result) for result in self.attacks if registry.has("attack", result.attack))


def _stated(result: AttackResult) -> Mapping[str, Any]:
    stated, supposing = plain_result(result), registry.find("attack", result.attack).supposing
    words = attack_in_words(stated["success"], stated["baseline"], stated["targets"], supposing)
    shown = f" {ABOUT_SHOWN_VALUES}" if result.finding.endswith(ABOUT_SHOWN_VALUES) else ""
    return {**stated, "finding": f"{words}{shown}"}


def run_checks(
    checks: Checks,
    original: Microdata | None,
    seen_by: Callable[[AnyMeasure], object],
    view: Callable[[], View[object, Schema]],
    progress: Progress,
    *,
    exact: Sequence[Score] = (),
    truthful: bool = True,
    held: Mapping[str, object] = MappingProxyType({}),
) -> Checked:
    """Measure what is `seen_by` each measure, and attack the view.

    `exact` are the scores that a search states of its recoding: none is measured again, and the first, its loss, is always
    among the scores. `truthful` says whether every cell shows what its record's value lies under. `held` is what an attack may
    be given besides the view, by the names of its needs. Usual measures that nobody asked for may be impossible: a mask that
    turns numbers into words leaves nothing to compare record by record.
    """
    by_key = {score.measure: score for score in exact}
    scores: list[Score] = list(exact if checks.usual[0] else exact[:1])
    measured: list[AnyMeasure | None] = [None] * len(scores)
    unmeasured: list[str] = []
    risks = 0
    for position, measure in enumerate(checks.measures):
        exact_score = by_key.get(measure_key(measure)) if _is_usual(measure) else None
        if exact_score is not None and exact_score in scores:
            continue
        progress("measuring", position, len(checks.measures))
        is_risk = position >= len(checks.measures) - checks.risks
        if measure.supposes_truth and not truthful:
            unmeasured.append(f"{measure_key(measure)} says nothing here: {_OTHER_VALUES}")
            continue
        try:
            score = measure.score(original, seen_by(measure)) if exact_score is None else exact_score
        except Unsupported as error:
            if not checks.usual[is_risk]:
                raise
            unmeasured.append(f"{measure_key(measure)} was not measured: {error}")
            continue
        scores.append(score)
        measured.append(measure)
        risks += is_risk
    apart = distinguished(scores, measured)
    results = _attacked(view(), checks.attacks, progress, held) if checks.attacks else ()
    return Checked(tuple(apart), tuple(score.measure for score in apart[len(apart) - risks :]), tuple(unmeasured), results)


def exact_loss(loss: float) -> Score:
    """The loss of a recoding, which states it per class."""
    meaning = "mean loss of detail per record and attribute: 0 keeps every value, 1 keeps none; a suppressed record costs 1"
    return Score("loss", loss, "lower", meaning)


def _attacked(
    view: View[object, Schema], attacks: tuple[AnyAttack, ...], progress: Progress, held: Mapping[str, object]
) -> tuple[AttackResult, ...]:
    """Attack what is about to be published, with what of the things `held` an attack needs."""
    results = []
    for position, attack in enumerate(attacks):
        progress("attacking", position, len(attacks))
        brought = {name: held[name] for name in attack.needs if name in held}
        results.append(attack.run(view, attack.knowledge_from(brought) if brought else None))
    return tuple(results)


def plain_result(result: AttackResult) -> Plain:
    """An attack's result as plain data."""
    from sfumato.attacks.several.intersection import as_stated

    result = as_stated(result)
    return {
        "attack": result.attack,
        "success": result.success,
        "baseline": result.baseline,
        "interval": list(result.interval),
        "targets": result.targets,
        "finding": result.finding,
    }


def computed_again(score: Score, released: ReleasedTable) -> bool:
    """Whether the published rows give this score: of a measure with its usual parameters that takes nothing else."""
    if not registry.has("measure", score.measure):
        return False
    measure: Any = registry.find("measure", score.measure)
    if not measure.of_rows_alone or (released.counts is not None and not measure.of_groups):
        return False
    try:
        again: Score = measure().score(None, released)
    except SfumatoError:  # it takes a column that is not there
        return False
    if (again.better, again.meaning, set(again.parts)) != (score.better, score.meaning, set(score.parts)):
        return False
    pairs = [(again.value, score.value), *((again.parts[part], score.parts[part]) for part in again.parts)]
    if score.floor is not None:  # earlier certificates state none
        pairs.append((math.nan if again.floor is None else again.floor, score.floor))
    if score.interval is not None:
        pairs += zip(again.interval or (math.nan, math.nan), score.interval, strict=True)
    return all(math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12) for one, other in pairs)


def shown_ranges(table: ClassTable, recoding: Recoding) -> dict[str, dict[str, ShownValue]]:
    """What the shown values stand for that are no hierarchy nodes (ranges made by partitioning), by
    column and text.
    """
    ranges: dict[str, dict[str, ShownValue]] = {}
    for name, tree, shown in zip(table.quasi, table.hierarchies, recoding.shown, strict=True):
        labels = set(tree.labels)
        extra = {
            label: ShownValue(float(shown.loss[i]), float(shown.sizes[i]), frozenset(), bounds=_bounds(label))
            for i, label in enumerate(shown.labels)
            if label is not None and label not in labels
        }
        if extra:
            ranges[name] = extra
    return ranges


def _each(one_or_several: Any) -> list[Any]:
    """One entry or several, a key that is asked for twice once."""
    entries = [one_or_several] if isinstance(one_or_several, (str, Mapping, Measure, Attack)) else list(one_or_several)
    return [entry for i, entry in enumerate(entries) if not (isinstance(entry, str) and entry in entries[:i])]


def _with_population(measure: AnyMeasure, population: Microdata | None) -> AnyMeasure:
    """The measure with the population of this run, where it compares with one and names none."""
    if population is None or getattr(measure, "population", population) is not None:
        return measure
    compared: Any = measure
    return dataclasses.replace(compared, population=population)  # type: ignore[no-any-return]


def distinguished(scores: Sequence[Score], measures: Sequence[AnyMeasure | None]) -> list[Score]:
    """Scores of one measure with different parameters are named by the parameters that are words or numbers."""
    repeated = {name for name, times in Counter(score.measure for score in scores).items() if times > 1}
    named_so_far: set[str] = set()
    apart = []
    for score, measure in zip(scores, measures, strict=True):
        label = score.measure
        if label in repeated and measure is not None:
            label = f"{label}({_parameters(measure)})"
        plain, number = label, 1
        while label in named_so_far:
            number += 1
            label = f"{plain} {number}"
        named_so_far.add(label)
        apart.append(dataclasses.replace(score, measure=label))
    return apart


def _parameters(measure: Any) -> str:
    fields = [field for field in dataclasses.fields(measure) if field.init] if dataclasses.is_dataclass(measure) else []
    settings = [(field.name, getattr(measure, field.name), field.default) for field in fields]
    return ", ".join(
        f"{name}={value}" for name, value, usual in settings if isinstance(value, (str, int, float)) and value != usual
    )


def _is_usual(measure: object) -> bool:
    """Whether a measure has its usual parameters."""
    if not dataclasses.is_dataclass(measure):
        return True
    return all(getattr(measure, field.name) == field.default for field in dataclasses.fields(measure))


def measure_key(measure: AnyMeasure) -> str:
    """The name under which a measure is asked for."""
    return str(getattr(measure, "key", type(measure).__name__))


def _bounds(label: str) -> tuple[float, float] | None:
    from sfumato.measures.guarantees.cover import interval_of

    span = interval_of(label)
    return None if span is None else bounds_of(span)


def bounds_of(span: tuple[float, float, bool, bool]) -> tuple[float, float]:
    """The half-open numeric extent of a range: `[28, 36)` ends before 36, `[1.5, 2.5]` just after 2.5."""
    low, high, _, with_high = span
    # beyond 2**53 neighbouring whole numbers are the same floating-point number
    return low, math.nextafter(high, math.inf) if with_high or abs(high) >= 2.0**53 else high
