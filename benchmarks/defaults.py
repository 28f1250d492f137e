"""The default search beside every single one, on tables of numbers, of categories and of both.

One measure for all: the range shown, read from the texts of the recoded rows (`measures.utility.RangeShown`). One rule for all: a
declared hierarchy is kept to, which `Mondrian(ranges_everywhere=True)` alone does not. The default must be within 5 % of the best
single search, in at most twice the CPU time of the slowest.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from benchmarks import adult
from benchmarks.harness import Case

if TYPE_CHECKING:
    from sfumato.data.microdata import Microdata

WORSE = 1.05
SLOWER = 2.0
K = 5
SMALL_K = (2, 3)
_HOUSING = ("urbrur", "roof", "walls", "water", "electcon", "relat", "sex", "age", "hhcivil")
_LABOUR = ("REGION", "SEX", "AGE", "MARSTAT", "KINDPERS", "NUMYOUNG", "NUMOLD", "EDUC1", "ETNI", "INCOME")


def cases() -> Iterator[Case]:
    """The default on every table: generated ones, then those that have to be there."""
    generated = {name: make for name, make in tables().items() if name.startswith("generated")}
    for name, make in generated.items():
        for k in (*SMALL_K, K) if "5,000" in name else (K,):
            yield _case(name, make, k)
    adult.folder()
    for name, make in tables().items():
        if name not in generated:
            yield _case(name, make, K)


def tables() -> dict[str, Callable[[], Microdata]]:
    """Tables of both kinds; numbers have no declared hierarchy except in Adult and of generated people."""
    flat = frozenset(adult.COLUMNS)
    return {
        "Tarragona": partial(_file, "casc/Tarragona.csv"),
        "EIA": partial(_file, "casc/EIA.csv", but=("UTILITYID", "UTILNAME")),
        "Abalone": partial(_file, "abalone/abalone.csv"),
        "CASC census": partial(_file, "casc/CASCrefmicrodata.csv"),
        "housing": partial(_file, "casc/testdata.csv", only=_HOUSING),
        "labour force": partial(_file, "casc/free1.csv", only=_LABOUR),
        "Abalone, intervals proposed by inspect": partial(_proposed, "abalone/abalone.csv"),
        "Adult without hierarchies": partial(_adult, flat),
        "Adult, age without hierarchy": partial(_adult, frozenset({"age"})),
        "Adult": partial(_adult, frozenset()),
        "generated people, 5,000": partial(people, 5_000),
        "generated people, 20,000": partial(people, 20_000),
        "generated people, 5,000, ages with free ranges": partial(people, 5_000, ages=True),
        "generated people, 5,000, postcodes as numbers": partial(people, 5_000, ages=True, postcodes=True),
    }


def singles() -> dict[str, Any]:
    """The searches that the default is compared with."""
    import sfumato as sf

    return {
        "LocalRecoding": sf.LocalRecoding(),
        "Mondrian": sf.Mondrian(),
        "Mondrian, relaxed": sf.Mondrian(relaxed=True),
        "TopDown": sf.TopDown(partial=True),
        "KMember": sf.KMember(),
        "Lattice": sf.Lattice(suppression=0.05),
    }


def people(rows: int, *, ages: bool = False, postcodes: bool = False) -> Microdata:
    """Generated people; `ages` without a hierarchy, and `postcodes` as the numbers that they are not."""
    import pyarrow as pa

    import sfumato as sf

    table, schema = sf.data.sample_table(rows), sf.data.sample_schema()
    columns = dict(schema.columns)
    if ages:
        columns["age"] = columns["age"].model_copy(update={"hierarchy": None})
    if postcodes:
        place = table.column_names.index("postcode")
        table = table.set_column(place, "postcode", table.column("postcode").cast(pa.string()).cast(pa.int64()))
        columns["postcode"] = sf.Column(role="quasi", type="integer")
    return sf.read(table, schema.replace(columns=columns))


def shown_range(people: Microdata, outcome: Any) -> float:
    """The measure of a search's outcome, from the texts of the rows."""
    from sfumato.data.microdata import ReleasedTable
    from sfumato.data.recoding import RecodingTable
    from sfumato.measures.utility.range_shown import RangeShown
    from sfumato.workflow.publishing.scoring import shown_ranges

    codes, recoding = outcome.class_table, outcome.result
    rows = people.relation.recode(RecodingTable.of(recoding, codes.keys, codes.quasi), list(codes.quasi))
    trees = dict(zip(codes.quasi, codes.hierarchies, strict=True))
    released = ReleasedTable(rows, people.schema, trees, codes.records, shown_ranges(codes, recoding))
    return RangeShown().score(None, released).value


def _case(name: str, make: Callable[[], Microdata], k: int) -> Case:
    import sfumato as sf

    promises = [sf.KAnonymity(k)]
    make = cache(make)

    @cache
    def beside() -> tuple[dict[str, float], dict[str, float]]:
        """Range shown and seconds of every single search."""
        people, shown, seconds = make(), {}, {}
        for label, search in singles().items():
            start = time.process_time()
            outcome = search.run(people, promises)
            seconds[label], shown[label] = time.process_time() - start, shown_range(people, outcome)
        return shown, seconds

    def slowest() -> Any:
        seconds = beside()[1]
        return singles()[max(seconds, key=seconds.__getitem__)].run(make(), promises)

    def check(outcome: Any) -> str | None:
        best = min(beside()[0].values())
        reached = shown_range(make(), outcome)
        return None if reached <= WORSE * best else f"range shown {reached:.4f}, the best single search {best:.4f}"

    def remark(outcome: Any) -> str:
        shown = beside()[0]
        best = min(shown, key=shown.__getitem__)
        kept = f"range shown {shown_range(make(), outcome):.4f} ({outcome.details['search']})"
        return f"{kept}; best single {shown[best]:.4f} ({best})"

    return Case(
        f"default, k={k}: {name}",
        lambda people: sf.LeastLoss().run(people, promises),
        prepare=make,
        peer=slowest,
        bar=SLOWER,
        check=check,
        remark=remark,
        repeats=3,
        note="peer: the slowest single search",
    )


def _file(path: str, *, but: tuple[str, ...] = (), only: tuple[str, ...] = ()) -> Microdata:
    """A file with all its columns as quasi-identifiers, types as they are, no hierarchy."""
    import pyarrow.csv

    import sfumato as sf

    file = adult.folder().parent / path
    if not file.is_file():
        raise adult.NoData(f"the folder that SFUMATO_DATA names has no {path}")
    rows = pyarrow.csv.read_csv(file)
    names = [name for name in rows.column_names if name not in but and (not only or name in only)]
    return sf.read(rows.select(names), sf.Schema(dataset="numbers", columns={name: sf.Column(role="quasi") for name in names}))


def _proposed(path: str) -> Microdata:
    """A file with the hierarchies that `inspect` proposes, marked as learnt from the data."""
    from sfumato.workflow.inspect import suggested

    return suggested(str(adult.folder().parent / path))


def _adult(flat: frozenset[str]) -> Microdata:
    """Adult with the hierarchies of all columns but these."""
    import sfumato as sf

    columns = {name: {"role": "quasi"} if name in flat else about for name, about in adult.schema()["columns"].items()}
    return sf.read(adult.table(), {"dataset": "adult", "columns": columns})
