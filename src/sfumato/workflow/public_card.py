"""The public card of a folder, made from what is public: the certificate, the published rows, and who signed.

`saving` writes it and `verify` makes it again: what the page says cannot differ from what was certified. Whatever it shows
besides stands in the certificate's `card`, with the format of the page; a change of the page's words takes a new format.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sfumato.core.certificate import Certificate
from sfumato.core.view import Score
from sfumato.report.content import Answer, CardContent

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

#: The page that this version makes, the only one that certificates of the second format have: no earlier one was released.
CARD_FORMAT = "sfumato-card-3"
CARD = "card.html"
#: How a certificate begins to say that a column names the units.
_UNIT_COLUMN = "one value of the column '"


def stated_card(
    scores: Sequence[Score] = (), answers: Mapping[str, Answer] | None = None, details: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """What a certificate says about its public page: the format, and what no file of the folder shows."""
    return {
        "format": CARD_FORMAT,
        "scores": [{**score.__dict__, "parts": dict(score.parts)} for score in scores if not score.uses_original],
        "scored": bool(scores),
        "answers": {name: dataclasses.asdict(answer) for name, answer in (answers or {}).items()},
        "details": dict(details or {}),
    }


def public_card(certificate: Certificate, table: pa.Table | None, signature: str) -> str:
    """The page; `table` is None where the result is no table, `signature` is empty where nobody signed."""
    stated = _as_read(certificate)
    return _page(stated, _details(stated, table), class_sizes_of(stated, table), signature)


def _page(certificate: Certificate, details: Mapping[str, Any], sizes: NDArray[np.int64], signature: str) -> str:
    from sfumato.report.card import release_card

    card = certificate.card
    content = CardContent(
        certificate=certificate,
        title=certificate.dataset,
        scores=tuple(Score(**score) for score in card["scores"]),
        scored=bool(card["scored"]),
        figures=figures_of(certificate, sizes),
        risk=risk_of(certificate, sizes),
        details=details,
        answers={name: Answer(**answer) for name, answer in card["answers"].items()},
        signature=signature or "not signed",
        signed=bool(signature),
    )
    return release_card(content, audience="public")


def is_artefact(certificate: Certificate) -> bool:
    """Whether the certificate is about a private result, whose claims rest on how it was made."""
    return any(claim.evidence == "process" for claim in certificate.claims)


def class_sizes_of(certificate: Certificate, table: pa.Table | None) -> NDArray[np.int64]:
    """Records per class; none where values were changed and nothing is promised about classes: nobody knows those values."""
    import numpy as np

    from sfumato.measures.guarantees.classes import Classes

    if table is None or not certificate.claims or is_artefact(certificate):
        return np.zeros(0, dtype=np.int64)
    columns = certificate.schema.get("columns", {})
    quasi = [name for name in table.column_names if columns.get(name, {}).get("role") == "quasi"]
    return Classes.of(table, tuple(quasi)).sizes


def risk_of(certificate: Certificate, sizes: NDArray[np.int64]) -> dict[str, float]:
    """The risk of somebody who is known to be in the release: one over the size of the class; none where a person may have
    several records, which hide nobody from each other.
    """
    if not sizes.size or _has_units(certificate):
        return {}
    return {
        "prosecutor_highest": 1.0 / float(sizes.min()),
        "prosecutor_average": float(sizes.size) / float(sizes.sum()),
    }


def figures_of(certificate: Certificate, sizes: NDArray[np.int64]) -> dict[str, str]:
    """The figures that need nothing but the classes of the published rows."""
    from sfumato.report.figures.class_sizes import class_sizes
    from sfumato.report.figures.risk_profile import risk_profile

    if not sizes.size:
        return {}
    if _has_units(certificate):  # k and the risk are about units, and these are classes of records
        return {"class_sizes": class_sizes(sizes)}
    promised = [int(claim.parameters["k"]) for claim in certificate.claims if claim.guarantee == "KAnonymity"]
    return {"class_sizes": class_sizes(sizes, k=promised[0] if promised else None), "risk_profile": risk_profile(sizes)}


def _has_units(certificate: Certificate) -> bool:
    """Whether a column named whose record is whose."""
    return told_unit(certificate) is not None or any(claim.counts_units for claim in certificate.claims)


def told_unit(certificate: Certificate) -> str | None:
    """The column that the certificate says to name the units; None where it says that each record is one, or nothing."""
    told = str(certificate.transparency.get("unit", ""))
    return told.removeprefix(_UNIT_COLUMN).removesuffix("'") if told.startswith(_UNIT_COLUMN) else None


def _details(certificate: Certificate, table: pa.Table | None) -> dict[str, Any]:
    if is_artefact(certificate):
        published = {} if table is None else {"published rows": int(table.num_rows)}
        return {**published, **certificate.card["details"], **published}
    sizes = class_sizes_of(certificate, table)
    rows = 0 if table is None else int(table.num_rows)
    return {"released records": rows, **({"classes": int(sizes.size)} if sizes.size else {})}


def _as_read(certificate: Certificate) -> Certificate:
    """The certificate as whoever reads its file has it, without the card itself, whose digest is known only afterwards."""
    plain = json.loads(json.dumps(certificate.to_mapping(), sort_keys=True))
    plain["files"] = {name: about for name, about in plain["files"].items() if name != CARD}
    return Certificate.from_mapping(plain)
