"""`compare`: methods × parameters on your own data, each with its risk and its loss; the map, its front, a recommendation.

Duncan, Keller-McNulty, Stokes, "Disclosure risk vs. data utility: the R-U confidentiality map", NISS 2001.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.core import registry
from sfumato.core.declared import require
from sfumato.core.errors import InputError, ParameterError, forgetting
from sfumato.core.plain_data import PlainDict
from sfumato.core.progress import Progress, ProgressLike, shown, silent
from sfumato.core.view import AnyMeasure
from sfumato.data.masked import as_masked
from sfumato.data.microdata import Microdata
from sfumato.workflow.comparing.draws import told_apart
from sfumato.workflow.comparing.grid import MethodLike, expanded, fitted, usual_methods
from sfumato.workflow.comparing.measuring import Job, Measures, Point, point_of, run_all, untouched_point
from sfumato.workflow.comparing.memory import Memory

if TYPE_CHECKING:
    from sfumato.data.schema import Schema
    from sfumato.engines.sources import TableLike
    from sfumato.workflow.publishing.scoring import Measured

#: Grows when a method or a measure changes its results, so that nothing stale is remembered.
_EDITION = 5
ORIGINAL = "Original"
#: The axes of the map where nobody names others: an intruder links by whichever way finds more, and loss has a shape.
USUAL_RISK: Mapping[str, Any] = {"name": "disclosure_risk", "linkage": "largest"}
USUAL_LOSS = "overall_loss"
#: How often a method is drawn where nobody says how often.
USUAL_RUNS = 4


@dataclass(frozen=True)
class Comparison:
    """Every point of a comparison, the `front` (no other is both safer and more useful), and the `recommended` one."""

    dataset: str
    records: int
    points: tuple[Point, ...]
    original: Point
    risk_measure: str
    risk_meaning: str
    loss_measure: str
    loss_meaning: str
    most_risk: float | None = None
    most_loss: float | None = None
    roles: Mapping[str, str] = field(default_factory=dict)
    guessed: tuple[str, ...] = ()

    def __repr__(self) -> str:
        from sfumato.report.panels import comparison_words

        return comparison_words(self)

    def _repr_html_(self) -> str:
        from sfumato.report.panels import comparison_panel

        return comparison_panel(self)

    @property
    def measured(self) -> tuple[Point, ...]:
        """The methods that could be applied."""
        return tuple(point for point in self.points if point.refused is None)

    @property
    def unproven(self) -> tuple[str, ...]:
        """One sentence for each search that did not prove its optimum, with its gap where there is a bound."""
        return tuple(f"{point.label}: {point.unproven}" for point in self.measured if point.unproven is not None)

    @property
    def compared_by(self) -> str:
        """The risk by which methods are compared: that of the map's axis, as long as any method could be measured by it."""
        measures = [point.risk_measure for point in self.measured]
        return self.risk_measure if self.risk_measure in measures or not measures else measures[0]

    @property
    def front(self) -> tuple[Point, ...]:
        """The methods that no other betters in both risk and loss, by growing risk; risks of another measure do not count."""
        import numpy as np

        from sfumato.report.figures.tradeoff import frontier

        comparable = [point for point in self.measured if point.risk_measure == self.compared_by]
        if not comparable:
            return ()
        risk = np.array([point.gain for point in comparable], dtype=np.float64)
        loss = np.array([point.loss for point in comparable], dtype=np.float64)
        best = frontier(risk, loss).tolist()
        ends = {(risk[position], loss[position]) for position in best}
        order = sorted(range(len(comparable)), key=lambda position: (risk[position], loss[position]))
        return tuple(comparable[position] for position in order if (risk[position], loss[position]) in ends)

    @property
    def recommended(self) -> Point | None:
        """The method on the front with the best balance among those within the limits; None where none is."""
        inside = [point for point in self.front if self._within(point)]
        return min(inside, key=lambda point: point.balance) if inside else None

    @property
    def alike(self) -> tuple[Point, ...]:
        """The methods within the limits that cannot be told apart from the recommended one by their balance (`told_apart`)."""
        chosen = self.recommended
        others = [point for point in self.measured if point.risk_measure == self.compared_by and point is not chosen]
        return tuple(
            point
            for point in sorted(others, key=lambda point: point.balance)
            if chosen is not None and self._within(point) and told_apart(chosen.balances, point.balances) is False
        )

    @property
    def typed(self) -> tuple[str, str] | None:
        """What is typed to publish by the recommended method: options of `sfumato protect`, and arguments of `sf.protect`."""
        from sfumato.workflow.comparing.grid import method_of, typed

        return None if self.recommended is None else typed(method_of(self.recommended.method), self.recommended.label)

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why that one, in sentences."""
        from sfumato.report.comparison_words import reasons

        return reasons(self)

    def lines(self) -> list[str]:
        """The points as lines of text, best balance first."""
        from sfumato.report.comparison_words import lines

        return lines(self)

    def figure(self) -> str:
        """The map as SVG."""
        from sfumato.report.comparison_words import figure

        return figure(self)

    def page(self) -> str:
        """The map, the points and the recommendation as one self-contained HTML page."""
        from sfumato.report.comparison_words import page

        return page(self)

    def save_map(self, path: str | Path) -> Path:
        """Write the map: an HTML page, or with the ending `.svg` the figure alone. An earlier one is replaced.

        It was computed from the original, so that its owner alone can read it.
        """
        from sfumato.data.writers import atomic_path

        target = check_map(path)
        text = self.figure() if target.suffix.lower() == ".svg" else self.page()
        with atomic_path(target, mode=0o600) as temporary:
            temporary.write_text(text, encoding="utf-8")
        return target

    def to_mapping(self) -> PlainDict:
        """Plain data, ready for JSON."""
        from sfumato.report.comparison_words import as_mapping

        return as_mapping(self)

    def _within(self, point: Point) -> bool:
        return (self.most_risk is None or point.gain <= self.most_risk) and (
            self.most_loss is None or point.loss <= self.most_loss
        )


@forgetting()
def compare(
    data: TableLike,
    methods: Iterable[MethodLike] | None = None,
    *,
    schema: Schema | str | Path | None = None,
    risk: Measured = USUAL_RISK,
    loss: Measured = USUAL_LOSS,
    also: Iterable[Measured] = (),
    runs: int = USUAL_RUNS,
    seed: int | str = "compare",
    most_risk: float | None = None,
    most_loss: float | None = None,
    workers: int | None = None,
    cache: str | Path | bool = True,
    guessed: Iterable[str] = (),
    progress: ProgressLike = silent,
) -> Comparison:
    """Protect the data by every method, measure risk and loss of each, and find those that no other beats in both.

    `methods` are masks, searches with their guarantees (`sf.Recoded(sf.KAnonymity(5), sf.Mondrian())`), mappings or texts
    such as `"Mdav(k=[3, 5, 10])"` and `"KAnonymity(k=[3, 10]) by Mondrian"`; without any, a few strengths of the usual ones.
    `risk` and `loss` are measures (by key, mapping or value) and make the axes; the axis of a risk is its gain over chance.
    `also` are further measures. Each method is drawn `runs` times, so that the points have error bars. `most_risk` (a gain) and
    `most_loss` limit what is recommended. `guessed` are columns whose role nobody has declared; the page says so. Methods run on
    `workers` processes (default: every core). Scores, and nothing else, are remembered in `cache` (a folder; True: the
    user's cache; False: nowhere), so that a comparison that was stopped goes on where it was. Nothing is published:
    a comparison and its scores are the owner's. `progress=True` shows a bar in a terminal or a notebook.
    """
    from sfumato.engines.snapshots import read_once
    from sfumato.workflow.protect import microdata_of

    require(isinstance(runs, int) and 1 <= runs <= 1000, "compare: runs is a whole number from 1 to 1000")
    require(workers is None or workers >= 1, "compare: workers is at least 1")
    for limit, what in ((most_risk, "most_risk"), (most_loss, "most_loss")):
        require(limit is None or 0 <= limit <= 1, f"compare: {what} is a share between 0 and 1")
    people = read_once(data if isinstance(data, Microdata) and schema is None else microdata_of(data, schema))
    if not people.schema.quasi:
        raise InputError(
            'compare: no column has the role "quasi". Say which columns an outsider could know about a person '
            "(`sfumato inspect` writes a schema to start from)."
        )
    if len(people) == 0:
        raise InputError("compare: the table has no records")
    listed = [methods] if isinstance(methods, (str, Mapping)) else methods
    masks = usual_methods(people) if listed is None else expanded(listed, people)
    measures = Measures(
        _masked_measure(risk),
        _masked_measure(loss),
        tuple(_masked_measure(each) for each in also),
    )
    jobs = [Job(i, mask, f"{seed}/{run}") for i, mask in enumerate(masks) for run in range(runs if _draws(mask) else 1)]
    with shown(progress) as receiver:
        results = _results(people, jobs, measures, workers or os.cpu_count() or 1, _memory(cache), receiver)
    points = tuple(
        point_of(fitted(mask, people)[0], [results[job] for job in jobs if job.number == i], runs, people)
        for i, mask in enumerate(masks)
    )
    untouched = as_masked(people, people)
    first, second = measures.risk.score(people, untouched), measures.loss.score(people, untouched)
    return Comparison(
        people.schema.dataset,
        len(people),
        points,
        untouched_point(ORIGINAL, first, second),
        first.measure,
        first.meaning,
        second.measure,
        second.meaning,
        most_risk,
        most_loss,
        {name: column.role for name, column in people.schema.columns.items()},
        tuple(guessed),
    )


def _draws(method: object) -> bool:
    """Whether another run gives other rows. Of a recoded table, what is read in place of a category is drawn."""
    return bool(getattr(method, "draws", True))


def check_map(path: str | Path) -> Path:
    """Refuse a name that no map has, before the long work."""
    target = Path(path)
    if target.suffix.lower() not in (".html", ".htm", ".svg"):
        raise ParameterError("a map is written as .html or .svg")
    return target


def _results(
    people: Microdata, jobs: Sequence[Job], measures: Measures, workers: int, memory: Memory | None, progress: Progress
) -> dict[Job, Mapping[str, Any]]:
    names: dict[Job, str] = {}
    description = None if memory is None else measures.described()
    if memory is not None and description is not None:
        digest = memory.digest(people)
        names = {job: memory.name(_EDITION, _version(), digest, job.mask.described(), description, job.seed) for job in jobs}
    results: dict[Job, Mapping[str, Any]] = {}
    for job, name in names.items():
        if memory is not None and (remembered := memory.get(name)) is not None:
            results[job] = remembered

    def keep(job: Job, result: Mapping[str, Any]) -> None:
        results[job] = result
        if memory is not None and job in names and "refused" not in result:
            memory.keep(names[job], result)

    progress("comparing", len(results), len(jobs))
    rest = [job for job in jobs if job not in results]
    before = len(results)
    run_all(people, rest, measures, workers, lambda phase, done, _: progress(phase, before + done, len(jobs)), keep)
    return results


def _masked_measure(entry: Any) -> AnyMeasure:
    measure: AnyMeasure = registry.make("measure", entry)
    key = getattr(measure, "key", type(measure).__name__)
    require(
        measure.masked,
        f"compare: '{key}' does not compare records with those that they were made of, as a comparison of methods does. Ask for "
        "it where one release is made: protect with risk= or utility= (--risk, --utility)",
    )
    return measure


def _memory(cache: str | Path | bool) -> Memory | None:
    if cache is False:
        return None
    if cache is True:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        return Memory(base / "sfumato" / "compare")
    return Memory(Path(cache))


def _version() -> str:
    import sfumato

    return sfumato.__version__
