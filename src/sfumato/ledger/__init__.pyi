"""The names of this package and where they live: the one list, read by people, type checkers and the package itself."""

from sfumato.ledger.accounts import Account as Account
from sfumato.ledger.accounts import StoredAnswer as StoredAnswer
from sfumato.ledger.accounts import Charge as Charge
from sfumato.ledger.versions import DataVersion as DataVersion
from sfumato.ledger.chain import Entry as Entry
from sfumato.ledger.chain import Head as Head
from sfumato.ledger.ledger import Ledger as Ledger
from sfumato.ledger.amounts import LossAmount as LossAmount
from sfumato.ledger.accounts import Protected as Protected
from sfumato.ledger.accounts import Reservation as Reservation
from sfumato.ledger.accounts import Spending as Spending
from sfumato.ledger.unit_changes import Uncovered as Uncovered
from sfumato.ledger.unit_changes import UnitChange as UnitChange
from sfumato.ledger.verification import VerifyReport as VerifyReport
from sfumato.ledger.withdrawals import Withdrawal as Withdrawal

NAMES: dict[str, str]
