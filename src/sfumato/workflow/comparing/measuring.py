"""The work of a comparison: mask and measure, on every core (`workflow.jobs`). Nothing but scores comes back; those of all draws
of a method make one point of the map."""

from __future__ import annotations

import json
import math
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from sfumato.anonymity.recoded import Recoded, Searched
from sfumato.core import registry
from sfumato.core.certificate import plain
from sfumato.core.errors import GuaranteeNotMet, InputError, SfumatoError
from sfumato.core.plain_data import Plain, PlainDict
from sfumato.core.progress import Progress
from sfumato.core.view import AnyMeasure, Score
from sfumato.data.masked import Masked
from sfumato.data.microdata import Microdata
from sfumato.report.wording import optimum_not_proven
from sfumato.workflow.comparing.draws import margin, widened
from sfumato.workflow.comparing.grid import Method, fitted, label_of, method_of
from sfumato.workflow.jobs import can_share_rows, in_processes

#: Fewer jobs than this are done in this process: starting others would take longer.
_FEW_JOBS = 3
_WORKER = "sfumato.workflow.comparing.worker"
#: The risk of rows that belong to nobody.
_OF_NEW_ROWS = "nearest_record"


@dataclass(frozen=True, eq=False)
class Job:
    """One method with its seed; `number` is its place among the jobs of a comparison."""

    number: int
    mask: Method = field(repr=False)
    seed: str


@dataclass(frozen=True)
class Measures:
    """What is measured of each masked table; the first two are the axes of the map."""

    risk: AnyMeasure
    loss: AnyMeasure
    others: tuple[AnyMeasure, ...] = ()

    @cached_property
    def of_new_rows(self) -> AnyMeasure:
        """The risk of rows that no record stands behind."""
        measure: AnyMeasure = registry.make("measure", _OF_NEW_ROWS)
        return measure

    def described(self) -> PlainDict | None:
        """As plain data for another process; None where a measure holds something that is no plain data."""
        try:
            description = {
                "risk": _described(self.risk),
                "loss": _described(self.loss),
                "others": [_described(measure) for measure in self.others],
            }
            json.dumps(description, allow_nan=False)
        except (TypeError, ValueError, SfumatoError):
            return None
        return description

    @classmethod
    def of(cls, description: Plain) -> Measures:
        """From what `described` says."""
        others = tuple(registry.make("measure", each) for each in description["others"])
        return cls(
            registry.make("measure", description["risk"]),
            registry.make("measure", description["loss"]),
            others,
        )


def evaluate_each(people: Microdata, method: Method, seeds: Sequence[str], measures: Measures) -> list[PlainDict]:
    """Every draw of a method; what a search decides is the same in all of them and is searched once."""
    begun = time.process_time()
    try:
        searched = method.searched(people) if isinstance(method, Recoded) else None
    except (InputError, GuaranteeNotMet) as error:
        return [{"refused": str(error)}] * len(seeds)
    searching = time.process_time() - begun
    results = [_evaluate(people, method, seed, measures, searched) for seed in seeds]
    if results and "seconds" in results[0]:
        results[0]["seconds"] += searching
    return results


def _evaluate(people: Microdata, method: Method, seed: str, measures: Measures, searched: Searched | None) -> PlainDict:
    """Mask and measure once: `risk`, `loss`, further `scores`, their `parts`; or why the method was `refused`."""
    begun = time.process_time()
    mask, left = fitted(method, people)
    try:
        outcome = mask.apply(people, seed=seed, searched=searched) if isinstance(mask, Recoded) else mask.apply(people, seed=seed)
        masked = outcome.result
        by = measures.risk if masked.rows is not None else measures.of_new_rows
        risk = by.score(people, masked)
        loss = measures.loss.score(people, masked)
        others = [score for measure in measures.others if (score := _further(measure, people, masked)) is not None]
    except (InputError, GuaranteeNotMet) as error:
        return {"refused": str(error)}
    scores = [risk, loss, *others]
    unknown = [score.measure for score in scores[:2] if not math.isfinite(score.value)]
    if unknown:
        return {"refused": f"{unknown[0]} of the masked table is no number"}
    return {
        **_axes(risk, loss),
        "scores": {score.measure: _number(score.value) for score in scores},
        "parts": {score.measure: {name: _number(value) for name, value in score.parts.items()} for score in scores},
        "risk_measure": risk.measure,
        "linked_shares": [list(pair) for pair in risk.linked_shares],
        "left": list(left),
        "rows": len(masked),
        "guaranteed": bool(outcome.claimed),
        "unproven": optimum_not_proven(type(mask.search).__name__, outcome.details) if isinstance(mask, Recoded) else None,
        "seconds": time.process_time() - begun,
    }


def _axes(risk: Score, loss: Score) -> dict[str, float]:
    """Where a table lies on the map."""
    return {
        "risk": _toward_lower(risk),
        "floor": 0.0 if risk.floor is None else risk.floor,
        "gain": _toward_lower(risk) if risk.gain is None else risk.gain,
        "loss": _toward_lower(loss),
    }


def _further(measure: AnyMeasure, people: Microdata, masked: Masked) -> Score | None:
    """A score that is no axis of the map; where it cannot be measured (synthetic rows have no record) the method stays."""
    try:
        return measure.score(people, masked)
    except InputError:
        return None


def run_all(
    people: Microdata,
    jobs: Sequence[Job],
    measures: Measures,
    workers: int,
    progress: Progress,
    done: Callable[[Job, Plain], None],
) -> None:
    """Do every job, on as many processes as `workers` says; `done` hears of each as it ends.

    Draws of a search go together to one process, and first, because they take longest.
    """
    batches = _batches(jobs)
    description = measures.described() if workers > 1 and len(batches) >= _FEW_JOBS else None
    apart = [batch for batch in batches if description is not None and _is_public(batch[0].mask)]
    here = [batch for batch in batches if batch not in apart]
    count = min(workers, len(apart))
    if count < 2 or len(apart) < _FEW_JOBS or not can_share_rows():
        here, apart = batches, []
    finished = 0

    def ended(batch: Sequence[Job], results: Sequence[Plain]) -> None:
        nonlocal finished
        for job, result in zip(batch, results, strict=True):
            finished += 1
            done(job, result)
        progress("comparing", finished, len(jobs))

    if apart and description is not None:
        lines = [{"method": plain(batch[0].mask.described()), "seeds": [job.seed for job in batch]} for batch in apart]
        for place, answer in in_processes(_WORKER, people, description, lines, count):
            refused = {"refused": answer["refused"]} if "refused" in answer else None
            ended(apart[place], answer["draws"] if refused is None else [refused] * len(apart[place]))
    for batch in here:
        ended(batch, evaluate_each(people, batch[0].mask, [job.seed for job in batch], measures))


def _batches(jobs: Sequence[Job]) -> list[list[Job]]:
    """The draws of each search together, then every other draw by itself."""
    searches: dict[int, list[Job]] = {}
    for job in jobs:
        if isinstance(job.mask, Recoded):
            searches.setdefault(job.number, []).append(job)
    return [*searches.values(), *([job] for job in jobs if not isinstance(job.mask, Recoded))]


def _described(measure: AnyMeasure) -> dict[str, Any]:
    from sfumato.core.declared import parameters

    key = getattr(measure, "key", None)
    if key is None:
        raise InputError("a measure without a key")
    description = {"name": key, **parameters(measure)}
    if registry.make("measure", description) != measure:
        raise InputError("a measure that its parameters do not describe")
    return description


def _is_public(mask: Method) -> bool:
    """Whether another process finds the mask by its name and makes the same one from its parameters."""
    try:
        return bool(method_of(json.loads(json.dumps(plain(mask.described())))) == mask)
    except (SfumatoError, TypeError, ValueError):
        return False


def _toward_lower(score: Score) -> float:
    return float(score.value if score.better == "lower" else 1.0 - score.value)


def _number(value: float) -> float | None:
    """A number that JSON has, or None."""
    return float(value) if math.isfinite(value) else None


@dataclass(frozen=True)
class Point:
    """One method at one choice of parameters: mean risk and loss over its runs (shares; lower is better), or why it was
    refused (then they are not a number). `floor` is what chance gives of that risk, and `draws` are the gain over it and the loss
    of each run. `left` are quasi-identifiers that the method cannot change and that stay as they are; `guaranteed` says whether
    it keeps a guarantee, `drawn` whether chance decides what is published, `unproven` what a search says of an optimum
    that it did not prove, `linked_shares` what each record linkage finds, and chance."""

    label: str
    method: Mapping[str, Any]
    risk: float = math.nan
    loss: float = math.nan
    scores: Mapping[str, float] = field(default_factory=dict)
    parts: Mapping[str, Mapping[str, float]] = field(default_factory=dict, repr=False)
    spread: tuple[float, float] = (0.0, 0.0)
    runs: int = 0
    left: tuple[str, ...] = ()
    risk_measure: str = ""
    refused: str | None = None
    seconds: float = 0.0
    floor: float = 0.0
    draws: tuple[tuple[float, float], ...] = ()
    guaranteed: bool = False
    drawn: bool = True
    unproven: str | None = None
    linked_shares: tuple[tuple[float, float], ...] = ()

    @property
    def gain(self) -> float:
        """How far the risk is above chance, (risk − floor)/(1 − floor), averaged over the runs: the map's axis."""
        return statistics.fmean(gain for gain, _ in self.draws) if self.draws else self.risk

    @property
    def balance(self) -> float:
        """The mean of gain and loss, as in the overall score of Domingo-Ferrer and Torra."""
        return (self.gain + self.loss) / 2

    @property
    def balances(self) -> tuple[float, ...]:
        """The balance of each run."""
        return tuple((gain + loss) / 2 for gain, loss in self.draws)

    @property
    def margins(self) -> tuple[float, float] | None:
        """How far from `gain` and `loss` a new draw lies with 95 %, 0 where nothing is drawn; None after a single run."""
        varying = self.measured_within
        return varying if self.drawn or varying is None else (0.0, 0.0)

    @property
    def measured_within(self) -> tuple[float, float] | None:
        """How far the numbers of one more run lie from `gain` and `loss` with 95 %: of a new draw, or of a search, which draws
        nothing, of another measurement of the same cells."""
        gain, loss = (margin(series) for series in zip(*self.draws, strict=True)) if self.draws else (None, None)
        return None if gain is None or loss is None else (gain, loss)

    @property
    def widened(self) -> float:
        """How many times as wide the bounds are as those that very many runs would give."""
        return widened(self.runs)

    @property
    def people_found(self) -> tuple[float, float] | None:
        """The share of records that a linkage finds, and what chance finds; None for a risk without linkage."""
        return max(self.linked_shares) if self.linked_shares else None


def point_of(mask: Method, results: Sequence[Plain], runs: int, people: Microdata) -> Point:
    """The point of a method on these people, from the results of its runs; every run of one that draws nothing is like the only
    one."""
    seconds = sum(result.get("seconds", 0.0) for result in results)
    results = list(results) * (runs // len(results))
    refused = next((result["refused"] for result in results if "refused" in result), None)
    if refused is not None:
        return Point(label_of(mask, people), mask.described(), refused=str(refused))
    risks, losses = [result["risk"] for result in results], [result["loss"] for result in results]
    names = results[0]["scores"]
    measure = str(results[0]["risk_measure"])
    return Point(
        label=label_of(mask, people),
        method=mask.described(),
        risk=statistics.fmean(risks),
        loss=statistics.fmean(losses),
        scores={name: statistics.fmean(_numbers(result["scores"].get(name) for result in results)) for name in names},
        parts=_mean_parts([result["parts"] for result in results]),
        spread=(statistics.pstdev(risks), statistics.pstdev(losses)),
        runs=len(results),
        left=tuple(results[0]["left"]),
        risk_measure=measure,
        seconds=seconds,
        floor=statistics.fmean(result["floor"] for result in results),
        draws=tuple((float(result["gain"]), float(result["loss"])) for result in results),
        guaranteed=bool(results[0]["guaranteed"]),
        drawn=not isinstance(mask, Recoded) and mask.draws,
        unproven=results[0].get("unproven"),
        linked_shares=_mean_pairs([result["linked_shares"] for result in results]),
    )


def _mean_pairs(drawn: Sequence[Sequence[Sequence[float]]]) -> tuple[tuple[float, float], ...]:
    """What each linkage finds, and chance, averaged over the runs."""
    return tuple(
        (statistics.fmean(pair[0] for pair in pairs), statistics.fmean(pair[1] for pair in pairs))
        for pairs in zip(*drawn, strict=True)
    )


def _mean_parts(drawn: Sequence[Mapping[str, Mapping[str, float]]]) -> dict[str, dict[str, float]]:
    """Each part averaged over the runs that have it."""
    averages: dict[str, dict[str, float]] = {}
    for measure, parts in drawn[0].items():
        several = {name: _numbers(run.get(measure, {}).get(name) for run in drawn) for name in parts}
        averages[measure] = {name: statistics.fmean(values) for name, values in several.items()}
    return averages


def _numbers(values: Iterable[Any]) -> list[float]:
    return [float(value) if isinstance(value, (int, float)) else float("nan") for value in values]


def untouched_point(label: str, risk: Score, loss: Score) -> Point:
    """The point of the table as it is, from its scores."""
    axes = _axes(risk, loss)
    return Point(
        label,
        {},
        axes["risk"],
        axes["loss"],
        {score.measure: score.value for score in (risk, loss)},
        runs=1,
        risk_measure=risk.measure,
        floor=axes["floor"],
        draws=((axes["gain"], axes["loss"]),),
    )
