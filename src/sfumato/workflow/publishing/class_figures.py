"""What the card of a protected table shows of its classes: how large they are, and the risk of somebody who is among them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato.core.certificate import Certificate
from sfumato.workflow.contents.base import Page
from sfumato.workflow.verifying.transparency import told_unit

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray


def class_page(certificate: Certificate, table: pa.Table) -> Page:
    """The part of the card that follows from certificate and rows."""
    sizes = _class_sizes(certificate, table)
    details = {"released records": int(table.num_rows), **({"classes": int(sizes.size)} if sizes.size else {})}
    return Page(details, _figures(certificate, sizes), _risk(certificate, sizes))


def _class_sizes(certificate: Certificate, table: pa.Table) -> NDArray[np.int64]:
    """Records per class; none where values were changed and nothing is promised about classes: nobody knows those values."""
    import numpy as np

    from sfumato.measures.guarantees.classes import Classes

    if not certificate.claims:
        return np.zeros(0, dtype=np.int64)
    columns = certificate.schema.get("columns", {})
    quasi = [name for name in table.column_names if columns.get(name, {}).get("role") == "quasi"]
    return Classes.of(table, tuple(quasi)).sizes


def _risk(certificate: Certificate, sizes: NDArray[np.int64]) -> dict[str, float]:
    """The risk of somebody who is known to be in the release: one over the size of the class; none where a person may have
    several records, which hide nobody from each other.
    """
    if not sizes.size or _has_units(certificate):
        return {}
    return {
        "prosecutor_highest": 1.0 / float(sizes.min()),
        "prosecutor_average": float(sizes.size) / float(sizes.sum()),
    }


def _figures(certificate: Certificate, sizes: NDArray[np.int64]) -> dict[str, str]:
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
