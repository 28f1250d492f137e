"""Publishing a private artefact: a histogram, a synthetic table, a model, released once and used freely.

Its evidence is the process: the certificate states the loss with its unit and neighbour relation, the argument why
it holds, the source of the noise and the ledger's entry that paid for it. What was computed without noise stays in
the owner's folder.
Blum, Ligett, Roth, "A learning theory approach to non-interactive database privacy", STOC 2008.
"""

from __future__ import annotations

import dataclasses
import datetime
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from sfumato.core.certificate import Certificate, Claim, canonical, plain
from sfumato.core.errors import ParameterError
from sfumato.core.guarantees.loss import LossGuarantee
from sfumato.core.outcome import Outcome
from sfumato.core.params import parameters
from sfumato.data.schema import Column, Schema
from sfumato.report.wording import counted
from sfumato.workflow.release import NOT_ENTERED

if TYPE_CHECKING:
    import pyarrow as pa

    from sfumato.ledger.ledger import Ledger
    from sfumato.workflow.release import Audience, Format

#: How a release entry says that its guarantee rests on the process, so that nobody looks for classes in its rows.
PROCESS = "process"
#: How it names the digest of the result that charges keep too; entries of earlier versions have none.
RESULT_DIGEST = "result_sha256"

#: What an outcome says about itself; everything else in its details was computed with noise, or not from the data.
_ABOUT = frozenset({"argument", "randomness", "private", "dataset", "ledger_entry", "owner", "not_covered"})

NOT_CHARGED = "not charged to a ledger: what else is spent on the same data is not counted"
DEMONSTRATION = "made with a seed: a demonstration that anybody can repeat, not a private release"


@dataclass(frozen=True, eq=False)
class Artefact:
    """A private result with its certificate.

    `data` is an Arrow table or plain data; `details` says how it was made, as far as everybody may know; `owner` holds
    what was computed without noise and never leaves with the release.
    """

    data: Any = field(repr=False)
    certificate: Certificate = field(repr=False)
    guarantees: tuple[LossGuarantee, ...]
    details: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    owner: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}), repr=False)

    def __repr__(self) -> str:
        said = "; ".join(claim.promised for claim in self.certificate.claims)
        what = counted(self.data.num_rows, "row") if is_table(self.data) else "plain data"
        seeded = "" if self.certificate.private else ", a demonstration"
        return f"Artefact('{self.certificate.dataset}', {self.certificate.method.get('name')}, {what}, {said}{seeded})"

    @property
    def entered(self) -> bool:
        """True when the artefact was charged to a ledger."""
        return all(claim.ledger_entry is not None for claim in self.certificate.claims)

    def card(self, audience: Audience = "public") -> str:
        """The artefact on one HTML page, for everybody or for its owner."""
        from sfumato.workflow.artefact_saving import card_of

        return card_of(self, audience)

    def save(
        self, folder: str | Path, format: Format = "parquet", *, overwrite: bool = False, sign: Path | str | None = None
    ) -> Path:
        """Write `public/` (to give away) and `owner/` (to keep) into a new folder, which appears whole or not at all.

        A table is written in this format, plain data as JSON; what was written is read back and must be the same.
        """
        from sfumato.workflow.artefact_saving import save_artefact

        return save_artefact(self, Path(folder), format, overwrite=overwrite, sign=None if sign is None else Path(sign))


def publish_artefact(
    outcome: Outcome[Any],
    *,
    dataset: str | None = None,
    ledger: Ledger | None = None,
    ledger_entry: str | None = None,
) -> Artefact:
    """Certify what an algorithm returned.

    `dataset` and `ledger_entry` are the outcome's own unless given here. With `ledger` the release is entered there
    besides, so that whoever looks finds what the budget was spent on; entering does not charge.
    """
    from sfumato.dp.sql.identity import result_digest, table_digest
    from sfumato.workflow.publish import versions

    guarantees = _losses(outcome)
    details = outcome.details
    private = details.get("private") is True
    paid = ledger_entry or details.get("ledger_entry")
    schema = Schema(dataset=dataset or details.get("dataset") or "unnamed", columns=_columns(outcome.result))
    claims = tuple(_claim(each, str(details.get("argument") or ""), private, paid) for each in guarantees)
    method = plain(dict(outcome.method))
    certificate = Certificate(
        dataset=schema.dataset,
        created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        claims=claims,
        method=method,
        schema=schema.model_dump(mode="json", exclude_none=True, exclude_defaults=True),
        files={},
        versions=versions(),
        fingerprint=None,
        randomness=str(details.get("randomness") or "not said"),
        private=private,
        ledger=NOT_ENTERED if paid is None else str(paid),
        notices=(
            *(() if private else (DEMONSTRATION,)),
            *(() if paid else (NOT_CHARGED,)),
            *_not_covered(details, schema, ledger),
        ),
    )
    if ledger is not None:  # last: an entry stays, whatever fails after it
        payload = {
            **_payload(outcome.result, guarantees, method, paid, private),
            RESULT_DIGEST: result_digest(outcome.result),
        }
        if is_table(details.get("errors")):
            payload["errors"] = table_digest(details["errors"])
        token = f"release-{hashlib.sha256(canonical(payload)).hexdigest()}"
        certificate = dataclasses.replace(certificate, ledger=ledger.enter_release(schema.dataset, payload, token=token).hash)
    shown = {name: value for name, value in details.items() if name not in _ABOUT}
    return Artefact(outcome.result, certificate, guarantees, shown, dict(details.get("owner") or {}))


def _not_covered(details: Mapping[str, Any], schema: Schema, ledger: Ledger | None) -> tuple[str, ...]:
    """Earlier charges on the data set that the claim does not cover, as they were when it was paid for and as they are now."""
    now = [] if ledger is None else [str(each) for each in ledger.not_covered(schema.dataset)]
    return tuple(dict.fromkeys([*(str(each) for each in details.get("not_covered") or ()), *now]))


def is_table(result: object) -> bool:
    """True for an Arrow table; anything else is plain data."""
    import pyarrow as pa

    return isinstance(result, pa.Table)


def as_json(result: object) -> bytes:
    """Plain data as the JSON file of a release; refused when it is no plain data."""
    try:
        text = json.dumps(plain(result), indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        # the cause is not chained: its message may print a value
        raise ParameterError(
            "a private result is an Arrow table or plain data (mappings, lists, finite numbers, texts); this is neither"
        ) from None
    return (text + "\n").encode()


def _losses(outcome: Outcome[Any]) -> tuple[LossGuarantee, ...]:
    claimed = tuple(each for each in outcome.claimed if isinstance(each, LossGuarantee))
    if not claimed or len(claimed) != len(outcome.claimed):
        raise ParameterError(
            "publish_artefact certifies outcomes that claim a privacy loss (PureDP, ApproxDP, …); tables with class guarantees "
            "are published by sf.protect"
        )
    return claimed


def _claim(guarantee: LossGuarantee, argument: str, private: bool, entry: str | None) -> Claim:
    """Seeded noise protects nobody who can guess the seed, so a demonstration's claim does not hold."""
    return Claim(
        guarantee=guarantee.key,
        parameters=parameters(guarantee),
        promised=guarantee.claim(),
        measured=None,
        holds=private,
        evidence="process",
        protects=guarantee.protects,
        adversary=guarantee.adversary,
        unit=guarantee.unit,
        neighbours=guarantee.compared,
        argument=argument or None,
        ledger_entry=None if entry is None else str(entry),
    )


def _columns(result: Any) -> dict[str, Column]:
    from sfumato.engines.canonical import kind_of_type

    if not is_table(result):
        return {}
    known: dict[str | None, Any] = {name: name for name in ("integer", "number", "boolean", "date", "datetime")}
    return {each.name: Column(type=known.get(kind_of_type(each.type), "string")) for each in result.schema}


def _payload(
    result: Any, guarantees: tuple[LossGuarantee, ...], method: Mapping[str, Any], paid: str | None, private: bool
) -> dict[str, Any]:
    """What the ledger keeps: no number of the result itself, only its digest."""
    table: pa.Table | None = result if is_table(result) else None
    return {
        "sha256": _digest(result),
        "rows": 0 if table is None else table.num_rows,
        "claims": {each.key: plain(parameters(each)) for each in guarantees},
        "promised": [each.claim() for each in guarantees],
        "method": dict(method),
        "evidence": PROCESS,
        "charged": paid,
        "private": private,
    }


def _digest(result: Any) -> str:
    """A digest of the content, the same whatever file it is written to."""
    import pyarrow as pa

    if not is_table(result):
        return hashlib.sha256(as_json(result)).hexdigest()
    from sfumato.data.writers import clean

    sink = pa.BufferOutputStream()
    rows = clean(result).combine_chunks()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return hashlib.sha256(sink.getvalue()).hexdigest()
