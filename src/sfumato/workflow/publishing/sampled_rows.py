"""Some of the records of a table, all sets of them equally likely, to be protected in this process.

The engine that holds the table orders its records by keyed draws and hands over the first ones; the others stay where they are.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from sfumato.core.errors import ParameterError, Unsupported, all_at_once
from sfumato.data.microdata import Microdata
from sfumato.engines.distinct_units import distinct_units
from sfumato.engines.memory import MemoryRelation
from sfumato.engines.plannable import plannable
from sfumato.engines.snapshots import one_state
from sfumato.masking.coding.sampling import sampled
from sfumato.masking.engine_rows import EngineRows

if TYPE_CHECKING:
    from sfumato.core.guarantees.base import ClassGuarantee
    from sfumato.core.randomness import Randomness

_KEY_BYTES = 32


def refuse_promises_about_the_original(guarantees: Iterable[ClassGuarantee]) -> None:
    """A promise about the distribution in the original is here one about the sample, which nobody keeps."""
    all_at_once(
        Unsupported,
        "promises about a sample",
        (
            f"{each} compares with the original table, and what is protected is a sample of it that nobody keeps, so that nobody "
            'could check it. Compare with the released rows (reference="released"), or leave sample out'
            for each in guarantees
            if getattr(each, "reference", None) == "input"
        ),
    )


def sample_of(data: Microdata, sample: int, randomness: Randomness) -> tuple[Microdata, int]:
    """So many of the records, in the order of their content, and how many there were."""
    if isinstance(sample, bool) or not isinstance(sample, int) or sample < 1:
        raise ParameterError("sample is a whole number of records, at least 1")
    with one_state(data) as held:
        size = len(held)
        if sample >= size:
            raise ParameterError(
                f"sample is {sample:,} and the table has {size:,} records: leave sample out to protect all of them"
            )
        relation = plannable(distinct_units(held.relation, held.schema.unit))
        odd = [name for name in held.column_names if name not in relation.fields]
        if odd:
            raise Unsupported(
                f"column '{odd[0]}' cannot be compared by engines, so that no sample is drawn; leave it out of the table"
            )
        rows = EngineRows.of(relation, held.schema, held.column_names, size, randomness.bytes(_KEY_BYTES))
        chosen = sampled(rows, "sample", sample)
        table = relation.run(chosen.finished(held.column_names), chosen.uploads)
    # an order that does not depend on the engine, so that a seed gives the same result everywhere
    plain = table.cast(pa.schema([(each.name, _plain_type(each.type)) for each in table.schema]))
    order = pc.sort_indices(plain, sort_keys=[(name, "ascending") for name in plain.column_names])
    return replace(data, relation=MemoryRelation(table.take(order))), size


def _plain_type(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind
