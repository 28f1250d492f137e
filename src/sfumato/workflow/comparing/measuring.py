"""The work of a comparison: mask and measure, on every core (`workflow.jobs`). Nothing but scores comes back."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
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
from sfumato.workflow.comparing.grid import Method, fitted, method_of
from sfumato.workflow.jobs import in_processes

#: Fewer jobs than this are done in this process: starting others would take longer.
_FEW_JOBS = 3
_WORKER = "sfumato.workflow.comparing.worker"


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
    unaligned_risk: AnyMeasure
    others: tuple[AnyMeasure, ...] = ()

    def described(self) -> PlainDict | None:
        """As plain data for another process; None where a measure holds something that is no plain data."""
        try:
            description = {
                "risk": _described(self.risk),
                "loss": _described(self.loss),
                "unaligned_risk": _described(self.unaligned_risk),
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
            registry.make("measure", description["unaligned_risk"]),
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
        by = measures.risk if masked.rows is not None else measures.unaligned_risk
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
        "risk": _toward_lower(risk),
        "floor": 0.0 if risk.floor is None else risk.floor,
        "gain": _toward_lower(risk) if risk.gain is None else risk.gain,
        "loss": _toward_lower(loss),
        "scores": {score.measure: plain(score.value) for score in scores},
        "parts": {score.measure: plain(dict(score.parts)) for score in scores},
        "risk_measure": risk.measure,
        "left": list(left),
        "rows": len(masked),
        "guaranteed": bool(outcome.claimed),
        "unproven": optimum_not_proven(type(mask.search).__name__, outcome.details) if isinstance(mask, Recoded) else None,
        "seconds": time.process_time() - begun,
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
    if count < 2 or len(apart) < _FEW_JOBS:
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
    from sfumato.core.params import parameters

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
