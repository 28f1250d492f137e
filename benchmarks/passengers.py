"""A wide lattice: passengers with 23 quasi-identifiers and 6.8·10⁸ combinations of levels, too many to look at all.

Fourteen ratings of 0 to 5, class, gender, kind of customer and of travel, age, distance, delays: a generated table with the
columns of surveys of airline passengers. `Lattice` is compared with bottom-up, top-down and genetic searches of the same
lattice, each given the same CPU time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from benchmarks.harness import Case

if TYPE_CHECKING:
    from sfumato.data.microdata import Microdata

ROWS = 20_000
SECONDS = 20.0
SUPPRESSION = 0.05
K = 5
_SEED = 23
_RATINGS = 14

Levels = tuple[int, ...]
Check = Callable[[Levels], float]


@cache
def passengers(rows: int = ROWS) -> Microdata:
    """The generated passengers, all columns quasi-identifiers."""
    import numpy as np
    import pyarrow as pa

    import sfumato as sf

    draw = np.random.Generator(np.random.PCG64(_SEED))
    mood, business = draw.normal(size=rows), draw.random(rows) < 0.48
    group = draw.normal(size=(rows, 3))
    columns: dict[str, Any] = {}
    schema: dict[str, Any] = {}
    for number in range(_RATINGS):
        score = 3.2 + 0.9 * mood + 0.7 * group[:, number % 3] + 0.8 * draw.normal(size=rows)
        columns[f"rating {number + 1}"] = np.clip(np.round(score), 0, 5).astype(np.int64)
        schema[f"rating {number + 1}"] = {"role": "quasi", "type": "integer", "hierarchy": {"flat": True}}
    columns["class"] = np.where(business, "Business", np.where(draw.random(rows) < 0.86, "Eco", "Eco Plus"))
    schema["class"] = {"role": "quasi", "hierarchy": {"flat": True}}
    for name, share, words in (
        ("gender", 0.5, ("Female", "Male")),
        ("customer", 0.82, ("Loyal", "disloyal")),
        ("satisfied", 0.43, ("yes", "no")),
    ):
        columns[name] = np.where(draw.random(rows) < share, *words)
        schema[name] = {"role": "quasi", "hierarchy": {"flat": True}}
    columns["travel"] = np.where(business | (draw.random(rows) < 0.4), "Business travel", "Personal travel")
    schema["travel"] = {"role": "quasi", "hierarchy": {"flat": True}}
    numbers = {
        "age": (np.clip(draw.normal(40, 15, rows), 7, 85), [5, 10, 20, 40]),
        "distance": (np.clip(draw.lognormal(6.7, 0.8, rows), 31, 4983), [100, 500, 1000, 2000]),
        "departure delay": (np.minimum(draw.exponential(15, rows) * (draw.random(rows) < 0.45), 500), [5, 15, 60, 240]),
    }
    numbers["arrival delay"] = (np.clip(numbers["departure delay"][0] + draw.normal(0, 4, rows), 0, 520), [5, 15, 60, 240])
    for name, (values, widths) in numbers.items():
        columns[name] = values.astype(np.int64)
        schema[name] = {"role": "quasi", "type": "integer", "hierarchy": {"intervals": widths}}
    return sf.read(pa.table(columns), {"dataset": "passengers", "columns": schema})


class Bench:
    """The lattice of a table with a clock: what a node loses, infinite where it suppresses too much."""

    def __init__(self, people: Microdata, seconds: float) -> None:
        import sfumato as sf
        from sfumato.anonymity.search.base import pose
        from sfumato.anonymity.search.node_tables import node_tables

        problem = pose(people, [sf.KAnonymity(K)])
        self.tables = node_tables(problem.table, problem.promises, problem.promises.totals())
        self.parts = self.tables.base_losses()
        self.limit = problem.allowed(SUPPRESSION)
        self.end = time.process_time() + seconds
        self.best = float("inf")
        self.checked: dict[Levels, float] = {}

    @property
    def top(self) -> Levels:
        """The most general node."""
        return tuple(self.tables.heights)

    def over(self) -> bool:
        """Whether the time is spent."""
        return time.process_time() > self.end

    def check(self, node: Levels) -> float:
        """The loss of a node; infinite plus what it suppresses where that is too much."""
        if node not in self.checked:
            verdict = self.tables.verdict(node)
            loss = sum(float(part[level]) for part, level in zip(self.parts, node, strict=True)) + verdict.penalty
            self.checked[node] = loss if verdict.suppressed <= self.limit else 10.0 + verdict.suppressed
            self.best = min(self.best, self.checked[node])
        return self.checked[node]

    def near(self, node: Levels, step: int) -> Iterator[Levels]:
        """Nodes one level up or down."""
        for a, level in enumerate(node):
            if 0 <= level + step <= self.top[a]:
                yield (*node[:a], level + step, *node[a + 1 :])


def bottom_up(bench: Bench) -> float:
    """From the most specific node raise what gives the least loss, to the end; then the neighbours of the best."""
    node = tuple(0 for _ in bench.top)
    while node != bench.top and not bench.over():
        node = min(bench.near(node, 1), key=bench.check)
    return _climbed(bench)


def top_down(bench: Bench) -> float:
    """From the most general node lower what gives the least loss; then the neighbours of the best."""
    node, loss = bench.top, bench.check(bench.top)
    while not bench.over():
        lower = min(bench.near(node, -1), key=bench.check, default=node)
        if bench.check(lower) >= loss:
            break
        node, loss = lower, bench.check(lower)
    return _climbed(bench)


def _climbed(bench: Bench) -> float:
    node = min(bench.checked, key=bench.checked.__getitem__)
    moved = True
    while moved and not bench.over():
        near = min([*bench.near(node, -1), *bench.near(node, 1)], key=lambda each: 99.0 if bench.over() else bench.check(each))
        moved = bench.checked.get(near, 99.0) < bench.checked[node]
        node = near if moved else node
    return bench.best


def genetic(bench: Bench, seed: int = _SEED) -> float:
    """A population of 100 level vectors: tournaments, uniform crossover, one level mutated, elite kept."""
    import numpy as np

    draw = np.random.Generator(np.random.PCG64(seed))
    heights = np.array(bench.top)
    population = [tuple(draw.integers(0, heights + 1).tolist()) for _ in range(50)]
    population += [tuple(np.maximum(heights - draw.integers(0, 2, heights.size), 0).tolist()) for _ in range(50)]
    while not bench.over():
        ranked = sorted(population, key=lambda each: 1e9 if bench.over() else bench.check(each))
        children = ranked[:20]
        while len(children) < len(population):
            first, second = (ranked[min(draw.integers(0, len(ranked), 3))] for _ in range(2))
            child = np.where(draw.random(heights.size) < 0.5, first, second)
            if draw.random() < 0.5:
                a = int(draw.integers(heights.size))
                child[a] = np.clip(child[a] + draw.choice([-1, 1]), 0, heights[a])
            children.append(tuple(int(level) for level in child))
        population = children
    return bench.best


SIMPLE: dict[str, Callable[[Bench], float]] = {
    "bottom-up": bottom_up,
    "top-down": top_down,
    "genetic": genetic,
    "genetic, other draws": partial(genetic, seed=2),
    "genetic, draws again": partial(genetic, seed=3),
}


def cases() -> Iterator[Case]:
    """`Lattice` beside the simple searches in the same CPU time."""
    import sfumato as sf

    spent: list[float] = []

    def ours(people: Microdata) -> Any:
        start = time.process_time()
        outcome = sf.Lattice(suppression=SUPPRESSION, time_limit=SECONDS).run(people, [sf.KAnonymity(K)])
        spent.append(time.process_time() - start)
        return outcome

    @cache
    def beside() -> dict[str, float]:
        return {name: search(Bench(passengers(), spent[0])) for name, search in SIMPLE.items()}

    def check(outcome: Any) -> str | None:
        best, loss = min(beside().values()), float(outcome.details["loss"])
        return None if loss <= best + 1e-9 else f"loss {loss:.4f}, a simple search {best:.4f}"

    yield Case(
        "passengers, 23 quasi-identifiers, k=5, 5% suppression, as good as simple searches",
        ours,
        unit="s",
        limit=1.5 * SECONDS,
        prepare=passengers,
        check=check,
        remark=lambda outcome: (
            f"loss {outcome.details['loss']:.4f}, gap {outcome.details['gap']:.4f}; "
            + ", ".join(f"{name} {loss:.4f}" for name, loss in beside().items())
        ),
        repeats=1,
        warm_run=False,
    )
