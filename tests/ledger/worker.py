"""A process of its own that works on a ledger and may be killed: `python -m tests.ledger.worker VERB ADDRESS
…`.

It prints a line after each call that returned, so that whoever started it knows what the ledger had promised.
"""

from __future__ import annotations

import os
import signal
import sys

from sfumato.core.errors import BudgetRefused
from sfumato.ledger import Ledger, LossAmount


def append(address: str, name: str, count: str) -> None:
    with Ledger.open(address) as ledger:
        for number in range(int(count)):
            entry = ledger.enter_release("d", {"by": name, "number": number}, token=f"{name}-{number}")
            print(entry.token, flush=True)


def spend(address: str, name: str, count: str) -> None:
    """Ask questions, answer two of three, roll some of the others back; stop when the budget is spent."""
    with Ledger.open(address) as ledger:
        for number in range(int(count)):
            question = f"{name}-{number}"
            try:
                reservation = ledger.reserve("d", "ann", LossAmount.pure("0.01"), question)
            except BudgetRefused:
                print("refused", flush=True)
                return
            print("reserved", question, flush=True)
            if number % 3:
                ledger.draw(reservation)
                answer = ledger.commit(reservation, {"value": question})
                print("answered", question, answer.entry, flush=True)
            elif number % 2:
                ledger.roll_back(reservation)
                print("returned", question, flush=True)


def die_inside_a_transaction(address: str) -> None:
    """Killed after the entry was written and before the transaction ends."""
    ledger = Ledger.open(address)
    with ledger._store.writing() as tables:
        ledger._append(tables, "release", "d", {"torn": True}, token="torn")
        print("written", flush=True)
        os.kill(os.getpid(), signal.SIGKILL)


def create(address: str) -> None:
    with Ledger.open(address) as ledger:
        print(ledger.head().ledger, flush=True)


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
