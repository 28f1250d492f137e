"""Where a release shall go, checked before the long work, and which tables no mask takes into this process."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.core.errors import InputError
from sfumato.core.params import require

if TYPE_CHECKING:
    from sfumato.data.microdata import Microdata
    from sfumato.engines.staging.destinations import Destination


def asked_destination(
    destination: str | Path | None,
    table_name: str | None,
    source: Microdata,
    *,
    overwrite: bool,
    sign: Path | str | None,
    memory: int | str | None,
    draft: bool,
) -> Destination | None:
    """Where the engine writes the rows, checked before the long work; None where they come into this process."""
    if destination is None:
        spare = {"table_name": table_name, "overwrite": overwrite, "sign": sign, "memory": memory}
        named = [name for name, value in spare.items() if value]
        require(not named, f"{', '.join(named)} is about a destination: pass destination= as well, or save the release")
        return None
    from sfumato.engines.staging.destinations import ParquetFolder, check_destination, destination_of
    from sfumato.workflow.publishing.appearing import check_place
    from sfumato.workflow.publishing.forecast import memory_of
    from sfumato.workflow.publishing.saving import DRAFT_IN_A_DATABASE, signing_key

    memory_of(memory)
    signing_key(None if sign is None else Path(sign))
    place = destination_of(destination, table_name, overwrite=overwrite)
    require(not draft or isinstance(place, ParquetFolder), DRAFT_IN_A_DATABASE)
    if isinstance(place, ParquetFolder):
        require(
            not set("*?[]{}") & set(str(place.path)),
            "a folder whose name has *, ?, [ or { cannot be read back by its files; choose another destination",
        )
        check_place(Path(os.path.abspath(place.path)), overwrite=overwrite)
    else:
        check_destination(place, source.relation)
    return place


def refuse_too_many_records(source: Microdata) -> None:
    """A mask in this process holds every record, several times over."""
    from sfumato.masking.engine_rows import MOST_RECORDS

    if source.relation.engine != "memory" and len(source) > MOST_RECORDS:
        raise InputError(
            f"the table has {len(source):,} records, and a mask in this process takes at most {MOST_RECORDS:,}. Let the engine "
            "mask them (destination=, --destination), or mask a uniform sample (sample=100_000, --sample 100000)."
        )
