"""One point of the map: a method at one choice of parameters, with what its draws say."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sfumato.anonymity.recoded import Recoded
from sfumato.core.plain_data import Plain
from sfumato.workflow.comparing.draws import margin
from sfumato.workflow.comparing.grid import Method, label_of

_LINKAGES = ("distance linkage", "probabilistic linkage")


@dataclass(frozen=True)
class Point:
    """One method at one choice of parameters: mean risk and loss over its runs (shares; lower is better), or why it was
    refused (then they are not a number). `floor` is what chance gives of that risk, and `draws` are the gain over it and the loss
    of each run. `left` are quasi-identifiers that the method cannot change and that stay as they are; `guaranteed` says whether
    it keeps a guarantee, `drawn` whether chance decides what is published,
    `unproven` what a search says of an optimum that it did not prove."""

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
        """How far from `gain` and `loss` a new draw lies with 95 %; None after a single run."""
        gain, loss = (margin(series) for series in zip(*self.draws, strict=True)) if self.draws else (None, None)
        return None if gain is None or loss is None else (gain, loss)

    @property
    def people_found(self) -> tuple[float, float] | None:
        """The share of records that a linkage finds, and what chance finds; None for a risk without linkage."""
        parts = self.parts.get(self.risk_measure, {})
        pairs = [(parts[name], parts.get(f"{name} by chance", 0.0)) for name in _LINKAGES if name in parts]
        return max(pairs) if pairs else None


def point_of(mask: Method, results: Sequence[Plain], runs: int) -> Point:
    """The point of a method, from the results of its runs; every run of one that draws nothing is like the only one."""
    seconds = sum(result.get("seconds", 0.0) for result in results)
    results = list(results) * (runs // len(results))
    refused = next((result["refused"] for result in results if "refused" in result), None)
    if refused is not None:
        return Point(label_of(mask), mask.described(), refused=str(refused))
    risks, losses = [result["risk"] for result in results], [result["loss"] for result in results]
    names = results[0]["scores"]
    measure = str(results[0]["risk_measure"])
    return Point(
        label=label_of(mask),
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
