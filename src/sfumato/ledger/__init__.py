"""The ledger: grants, spends, stored answers and releases, append-only and hash-chained, in SQLite or
PostgreSQL.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sfumato.core.lazy import from_table

_TABLE: dict[str, str] = {
    "Account": "sfumato.ledger.accounts",
    "Answer": "sfumato.ledger.accounts",
    "DataVersion": "sfumato.ledger.versions",
    "Entry": "sfumato.ledger.chain",
    "Head": "sfumato.ledger.chain",
    "Ledger": "sfumato.ledger.ledger",
    "LossAmount": "sfumato.ledger.amounts",
    "Protected": "sfumato.ledger.protected",
    "Reservation": "sfumato.ledger.accounts",
    "Spending": "sfumato.ledger.accounts",
    "Uncovered": "sfumato.ledger.unit_changes",
    "UnitChange": "sfumato.ledger.unit_changes",
    "VerifyReport": "sfumato.ledger.verification",
}

if TYPE_CHECKING:
    from sfumato.ledger.accounts import Account as Account
    from sfumato.ledger.accounts import Answer as Answer
    from sfumato.ledger.accounts import Reservation as Reservation
    from sfumato.ledger.accounts import Spending as Spending
    from sfumato.ledger.amounts import LossAmount as LossAmount
    from sfumato.ledger.chain import Entry as Entry
    from sfumato.ledger.chain import Head as Head
    from sfumato.ledger.ledger import Ledger as Ledger
    from sfumato.ledger.protected import Protected as Protected
    from sfumato.ledger.unit_changes import Uncovered as Uncovered
    from sfumato.ledger.unit_changes import UnitChange as UnitChange
    from sfumato.ledger.verification import VerifyReport as VerifyReport
    from sfumato.ledger.versions import DataVersion as DataVersion

__all__ = sorted(_TABLE)


def __getattr__(name: str) -> Any:
    return from_table(__name__, _TABLE, name)


def __dir__() -> list[str]:
    return __all__
