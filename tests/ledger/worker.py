"""A process of its own that works on a ledger and may be killed: `python -m tests.ledger.worker VERB ADDRESS
…`.

It prints a line after each call that returned, so that whoever started it knows what the ledger had promised.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections import Counter

from sfumato.core.errors import BudgetRefused
from sfumato.ledger import Charge, Ledger, LossAmount, Protected


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
                reservation = ledger.reserve("d", "ann", Charge(LossAmount.pure("0.01")), question)
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


def reserve(address: str, analyst: str, name: str, count: str) -> None:
    """Reserve for one question after the other, go on when refused, and say how often what happened."""
    happened: Counter[str] = Counter()
    with Ledger.open(address, patience=600) as ledger:
        for number in range(int(count)):
            try:
                ledger.reserve("d", analyst, Charge(LossAmount.pure("0.01")), f"{name}-{number}")
                happened["reserved"] += 1
            except BudgetRefused as refused:
                happened["cap" if "cap for everybody" in str(refused) else "grant"] += 1
    print(*(f"{what} {times}" for what, times in sorted(happened.items())), sep="\n", flush=True)


def fix_units(address: str, unit: str, count: str) -> None:
    """Be the first who spends on one dataset after the other, to protect this unit."""
    with Ledger.open(address) as ledger:
        for number in range(int(count)):
            try:
                ledger.reserve(f"d{number}", "ann", Charge(LossAmount.pure("0.01"), Protected(unit)), f"{unit}-{number}")
                print(f"d{number}", flush=True)
            except BudgetRefused as refused:
                if f"would protect one {unit}" not in str(refused):
                    raise


def kills(address: str, name: str, count: str) -> None:
    """Let children work on the ledger, kill each at a random point, and pass on what the ledger had promised them."""
    draw = random.Random(name)
    for number in range(int(count)):
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            _work_until_killed(address, f"{name}-{number}", writing)
        os.close(writing)
        with os.fdopen(reading) as promises:
            # Half of them at any time after they were born, a quarter after the first promise, a quarter after the first answer.
            first = promises.readline() if number % 2 else ""
            while number % 4 == 3 and "answered" not in first:
                first += promises.readline() or "the worker failed before it had an answered question\n"
            time.sleep(draw.uniform(0, 0.03))
            os.kill(child, signal.SIGKILL)
            told = first + promises.read()
        if os.waitpid(child, 0)[1] != signal.SIGKILL:
            raise SystemExit("a worker ended before it was killed")
        # A line is written in one piece or not at all.
        print(told, end="", flush=True)


def _work_until_killed(address: str, name: str, pipe: int) -> None:
    """Ask for ever: own questions, and some that every other worker asks as well."""

    def promised(line: str) -> None:
        os.write(pipe, f"{line}\n".encode())

    try:
        draw = random.Random(name)
        analyst = draw.choice(("ann", "bob", "cec"))
        ledger = Ledger.open(address)
        number = 0
        while True:
            number += 1
            question = f"shared-{draw.randrange(3000)}" if number % 2 else f"{name}-{number}"
            reservation = ledger.reserve("d", analyst, Charge(LossAmount.pure("0.01")), question)
            if reservation.answer is not None:
                promised(f"answered {question} {reservation.answer.entry} {reservation.answer.value}")
                continue
            promised(f"reserved {question} {reservation.token}")
            if number % 5 == 0:
                ledger.roll_back(reservation)
                promised(f"returned {question} {reservation.token}")
                continue
            ledger.draw(reservation)
            answer = ledger.commit(reservation, f"{name}-{number}")
            promised(f"answered {question} {answer.entry} {answer.value}")
    except BaseException as error:
        os.write(2, f"{type(error).__name__}: {error}\n".encode())
    finally:
        os._exit(1)


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
