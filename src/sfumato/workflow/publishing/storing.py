"""Publishing rows that stay in their engine: into a folder of Parquet files, or a table of a database.

A folder appears whole, with certificate and cards, or not at all; a table appears when it was verified and entered. Everything
that can be tried is tried before the entry, and what fails behind it leaves the entry and says so. What comes into this process
is said in `stored_rows`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.core.certificate import NOT_ENTERED
from sfumato.core.errors import SfumatoError, Unsupported, all_at_once, raise_alone
from sfumato.engines.staging.destinations import Destination, ParquetFolder
from sfumato.workflow.contents.stored_rows import PARTS, StoredRows
from sfumato.workflow.publishing.appearing import appearing_folder, make_folder
from sfumato.workflow.publishing.forecast import refuse_too_many_cells
from sfumato.workflow.publishing.publish import publish
from sfumato.workflow.publishing.saving import fill_folder, propose_signing, signing_key
from sfumato.workflow.publishing.scoring import measure_key
from sfumato.workflow.publishing.stored_masks import stored_masked_rows
from sfumato.workflow.publishing.stored_rows import stored_rows

if TYPE_CHECKING:
    from sfumato.anonymity.search.base import Search
    from sfumato.ledger.ledger import Ledger
    from sfumato.masking.base import Mask
    from sfumato.workflow.contents.base import Submission
    from sfumato.workflow.protect import ReleaseRequest
    from sfumato.workflow.publishing.scoring import Checks
    from sfumato.workflow.release import Release


def store(
    request: ReleaseRequest,
    method: Search | Mask,
    destination: Destination,
    *,
    ledger: Ledger | str | Path | None,
    checks: Checks,
    overwrite: bool,
    sign: Path | None,
    memory: int,
) -> Release[StoredRows]:
    """Search or mask, write, verify, enter and publish, without a row in this process."""
    from sfumato.masking.base import Mask

    masked = isinstance(method, Mask)
    unit_published = request.plan.schema.unit in request.plan.keep
    refuse_checks_of_records(checks, published_unit=unit_published, grouped=bool(request.guarantees) or not masked, masked=masked)
    key, progress = signing_key(sign), request.progress
    promised = [each.sensitive for each in request.guarantees if each.sensitive is not None]
    if not masked:
        refuse_too_many_cells(request.people, promised, memory)
    written = partial(_written, request, method, memory=memory, attacked=bool(checks.attacks))
    if not isinstance(destination, ParquetFolder):
        with _entry_stands() as entered, written(destination) as submission:
            release = publish(submission, ledger, checks=checks, progress=progress)
            entered.append(release)
            submission.content.written_to.publish()
        return release
    home = destination.path.absolute()
    if not request.draft:
        propose_signing(key)
    with _entry_stands() as entered, appearing_folder(home, overwrite=overwrite) as hidden:
        make_folder(hidden / "public", 0o755)
        parts = replace(destination, path=hidden / "public" / PARTS)
        with written(parts, home=home) as submission:
            release = publish(submission, ledger, checks=checks, progress=progress)
            entered.append(release)
            progress("saving", 0, 1)
            release.note_saved(fill_folder(release, hidden, "parquet", key))
    progress("saving", 1, 1)
    return release


@contextmanager
def _entry_stands() -> Iterator[list[Release[StoredRows]]]:
    """The steps of a release, which goes into the list when it is published: should one fail after it was entered in a ledger,
    the error says that the entry stands. That is the safe side: later releases are compared with one more than there is."""
    releases: list[Release[StoredRows]] = []
    try:
        yield releases
    except SfumatoError as error:
        if all(each.published.ledger == NOT_ENTERED for each in releases):
            raise
        text = f"{error} The ledger has an entry for this release, which did not appear. The entry stands, and counts."
        raise_alone(type(error)(text))


def _written(
    request: ReleaseRequest,
    method: Search | Mask,
    destination: Destination,
    *,
    memory: int,
    attacked: bool,
    home: Path | None = None,
) -> AbstractContextManager[Submission[StoredRows]]:
    from sfumato.masking.base import Mask

    if isinstance(method, Mask):
        return stored_masked_rows(request, method, destination, memory=memory, home=home, attacked=attacked)
    return stored_rows(request, method, destination, home=home, attacked=attacked)


def refuse_checks_of_records(checks: Checks, *, published_unit: bool, grouped: bool = True, masked: bool = False) -> None:
    """Measures and attacks of single records, or of people whom a published unit names, all at once, before the long work."""
    faults = [f"{measure_key(measure)} compares records" for measure in checks.measures if not measure.of_groups]
    faults += [
        f"{measure_key(measure)} compares with the cells that were known, which no mask in an engine counts"
        for measure in checks.measures
        if masked and measure.of_groups and measure.supposes_truth
    ]
    if not grouped and (checks.attacks or checks.measures):
        faults.append(
            "classes are measured and attacked, and masked rows are grouped only where a promise is about their classes"
        )
    faults += [
        f"{type(attack).__name__} looks at single records, or looks people up"
        for attack in checks.attacks
        if attack.needs or not attack.of_groups
    ]
    if published_unit and checks.risks:
        faults.append("risks count people where a column names them, and rows are grouped without it")
    all_at_once(
        Unsupported,
        "measured on records, which stay in the engine (to measure them, protect a sample of the table without destination=)",
        faults,
    )
