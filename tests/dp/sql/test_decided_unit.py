"""A schema that names people says whom an answer protects, or nothing is answered: decided before a row is read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.errors import ParameterError, SchemaError
from sfumato.core.randomness import StreamRandomness

COLUMNS: dict[str, dict[str, Any]] = {
    "patient_id": {"role": "identifier", "type": "string"},
    "ward": {"type": "string", "domain": ["a", "b"]},
    "score": {"type": "integer", "bounds": [0, 9]},
}
COUNT = "SELECT COUNT(*) AS n FROM visits"


def visits(rows: int = 40, patients: int = 5, *, columns: dict[str, Any] | None = None, **schema: Any) -> sf.Microdata:
    table = pa.table(
        {
            "patient_id": pa.array([f"p{row % patients}" for row in range(rows)], pa.string()),
            "ward": pa.array(["ab"[row % 2] for row in range(rows)], pa.string()),
            "score": pa.array([row % 10 for row in range(rows)], pa.int64()),
        }
    )
    return sf.read(table, schema={"dataset": "visits", "columns": {**COLUMNS, **(columns or {})}, **schema})


def open_session(data: sf.Microdata, **options: Any) -> sf.Session:
    return sf.Session(data, budget=sf.PureDP(10), max_rows=1, max_groups=1, **options)


ALGORITHMS = {
    "histogram": sf.dp.PrivateHistogram(columns=("ward",), epsilon=1, max_rows=1),
    "quantiles": sf.dp.PrivateQuantiles("score", (0.5,), epsilon=1),
    "top k": sf.dp.TopK("ward", 1, epsilon=1),
    "k-means": sf.dp.KMeans(("score",), 1, 1, iterations=1),
    "grid k-means": sf.dp.GridKMeans(("score",), 1, epsilon=1),
    "synthetic records": sf.dp.Mst(rho=1),
}


@pytest.mark.parametrize("pseudonym", [False, True])
def test_a_session_over_names_without_a_unit_is_refused_with_both_ways_out(pseudonym: bool) -> None:
    data = visits(columns={"patient_id": {"role": "identifier", "type": "string", "pseudonym": pseudonym}})
    with pytest.raises(SchemaError, match="it is not clear whom an answer would protect") as refusal:
        open_session(data)
    said = str(refusal.value)
    assert "'patient_id'" in said and 'role = "unit"' in said and 'unit = "record"' in said and refusal.value.exit_code == 2


@pytest.mark.parametrize("name", ALGORITHMS)
def test_an_algorithm_run_by_itself_is_refused_too(name: str) -> None:
    with pytest.raises(SchemaError, match="it is not clear whom an answer would protect"):
        ALGORITHMS[name].run(visits())
    assert ALGORITHMS[name].run(visits(unit="record"), randomness=StreamRandomness("x")).claimed[0].unit == "record"  # type: ignore[attr-defined]


def test_every_public_algorithm_is_among_them() -> None:
    """But SearchLog, which always asks for a unit column, and Aim, which shares its `run` with Mst."""
    from sfumato.core.registry import every

    assert set(every("algorithm").values()) - {type(each) for each in ALGORITHMS.values()} == {sf.dp.Aim, sf.dp.SearchLog}
    assert sf.dp.Aim.run is sf.dp.Mst.run


def test_the_refusal_depends_on_the_schema_alone() -> None:
    told = set()
    for data in (visits(), visits(0), visits(5, 5), visits(41)):
        with pytest.raises(SchemaError) as refusal:
            open_session(data)
        told.add(str(refusal.value))
    assert len(told) == 1


def ask(session: sf.Session) -> Any:
    return session.sql(COUNT, epsilon=1).loss


def release(session: sf.Session) -> Any:
    return session.release(ALGORITHMS["histogram"]).claimed[0]


@pytest.mark.parametrize("spend", [ask, release])
def test_either_word_opens_it_and_the_claim_says_which(spend: Callable[[sf.Session], Any]) -> None:
    for session in (open_session(visits(unit="record")), open_session(visits(), unit="record")):
        assert spend(session).unit == "record"
    as_unit = {"patient_id": {"role": "unit", "type": "string"}}
    for session in (open_session(visits(columns=as_unit)), open_session(visits(), unit="patient_id")):
        assert spend(session).unit == "patient_id"


def test_without_names_each_record_counts_as_before_and_it_is_said() -> None:
    data = visits(columns={"patient_id": {"type": "string"}})
    told = open_session(data).explain(COUNT, epsilon=1)
    assert told.unit == "record" and "Each record counts by itself" in str(told)
    assert ALGORITHMS["histogram"].run(data).claimed[0].unit == "record"  # type: ignore[attr-defined]


def test_every_table_of_a_session_must_say_it() -> None:
    said, silent = visits(unit="record"), visits()
    with pytest.raises(SchemaError, match="whom an answer would protect"):
        open_session({"one": said, "two": silent})  # type: ignore[arg-type]
    open_session({"one": said, "two": said})  # type: ignore[arg-type]
    open_session({"one": said, "two": silent}, unit="record")  # type: ignore[arg-type]


def test_a_run_does_not_contradict_the_schema() -> None:
    data = visits(columns={"patient_id": {"role": "unit", "type": "string"}})
    with pytest.raises(ParameterError, match="column 'patient_id' has the role unit"):
        open_session(data, unit="record")
    other = {"patient_id": {"type": "string", "role": "unit"}, "ward": {"type": "string"}}
    for spend in (ask, release):
        with pytest.raises(ParameterError, match="unit='ward' is another unit than the schema's.*or change the schema"):
            spend(open_session(visits(columns=other), unit="ward"))
    assert ask(open_session(visits(unit="record"), unit="patient_id")).unit == "patient_id", "coarser for one run is fine"
    assert release(open_session(visits(unit="record"), unit="patient_id")).unit == "patient_id"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("unit", "refuted"), [("record", True), ("patient_id", False)], ids=["what was promised about a record", "about a patient"]
)
def test_a_loss_per_record_is_no_loss_per_patient(unit: str, refuted: bool) -> None:
    """Eight rows of one patient added or removed, against the claim ε = 1; seeded, and wrong with a chance of 10⁻⁶."""
    with_patient = [f"p{row // 8}" for row in range(24)]
    databases = []
    for names in (with_patient, with_patient[:-8]):
        table = pa.table({"patient_id": names, "ward": ["a"] * len(names)})
        data = sf.read(table, schema={"dataset": "visits", "columns": {name: COLUMNS[name] for name in ("patient_id", "ward")}})
        columns = {**data.schema.columns, "patient_id": data.schema.columns["patient_id"].model_copy(update={"role": "unit"})}
        schema = data.schema.replace(unit="record") if unit == "record" else data.schema.replace(columns=columns)
        databases.append(data.with_schema(schema))
    source = StreamRandomness("eight rows")
    histogram = sf.dp.PrivateHistogram(columns=("ward",), epsilon=1, max_rows=1)

    def count(data: sf.Microdata) -> int:
        return int(histogram.run(data, randomness=source).result.column("count")[0].as_py())

    found = sf.refute(count, neighbours=tuple(databases), epsilon=1, samples=1_500, seconds=3000)
    assert found.refuted is refuted
