"""Itemsets: mined and hidden in the retail baskets, beside published peers, and a million baskets within a bound of memory.

The peers' seconds on retail at 0.5 % (pyfim 6.28: 0.12; mlxtend 0.25: 0.53 to encode and 3.13 to mine) are constants, measured on
a machine of the same kind; `python -m benchmarks.peers --only itemsets` measures both beside us.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.adult import NoData
from benchmarks.harness import Case

if TYPE_CHECKING:
    from sfumato.core.guarantees.hidden import Hidden
    from sfumato.data.transactions import Transactions

SUPPORT = 0.005
#: Itemsets of retail at that support, all and with at most four items.
ITEMSETS = 580
#: Milliseconds of the peers.
PYFIM, MLXTEND = 120.0, 3130.0
MANY = 1_000_000
SEED = 45


def folder() -> Path:
    """The folder with the baskets."""
    found = Path(os.environ.get("SFUMATO_DATA", "")) / "baskets"
    if not (found / "retail.dat").is_file():
        raise NoData("the retail baskets are missing: set SFUMATO_DATA to the folder that holds baskets/retail.dat")
    return found


def retail() -> Transactions:
    """88,162 baskets of a supermarket."""
    from sfumato.data.transactions import Transactions

    return Transactions.read(folder() / "retail.dat")


def secret(baskets: Transactions) -> Hidden:
    """The five most frequent triples: a hard case."""
    from sfumato.core.guarantees.hidden import Hidden
    from sfumato.rules.mining import mine

    triples = {itemset: count for itemset, count in mine(baskets, SUPPORT) if len(itemset) == 3}
    return Hidden(tuple(sorted(triples, key=lambda each: -triples[each])[:5]), SUPPORT)


def _right(itemsets: Any) -> str | None:
    return None if len(itemsets) == ITEMSETS else f"{len(itemsets)} itemsets and not {ITEMSETS}"


def _task() -> tuple[Transactions, Hidden]:
    baskets = retail()
    return baskets, secret(baskets)


def _hiding(method: str, most_lost: float) -> Case:
    from sfumato.core import registry
    from sfumato.rules.effects_of_hiding import side_effects

    chosen, told = registry.make("hiding", method), {}

    def hide(task: tuple[Transactions, Hidden]) -> Any:
        return task, chosen.run(*task)

    def check(result: Any) -> str | None:
        (baskets, hidden), outcome = result
        effects = side_effects(baskets, outcome.result, hidden)
        told.update(effects.to_mapping())
        if effects.hiding_failures or effects.ghost_itemsets:
            return "something is still derived, or came into being"
        return None if effects.lost_share <= most_lost else f"{effects.lost_share:.1%} of the other itemsets are lost"

    return Case(
        f"retail, five itemsets hidden by {method}",
        hide,
        limit=100.0,
        prepare=_task,
        check=check,
        remark=lambda _: f"lost {told['lost_share']:.1%} of {told['itemsets']:,}, {told['items_removed']:,} items removed",
    )


def _memory() -> Case:
    told: dict[str, Any] = {}

    def measured(_: Any) -> float:
        command = [sys.executable, "-m", "benchmarks.itemsets"]
        told.update(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
        return float(told["peak_mb"])

    return Case(
        "a million baskets, read, mined and hidden: peak memory",
        measured,
        unit="MB",
        limit=2000.0,
        reports=True,
        repeats=1,
        warm_run=False,
        check=lambda _: told["fault"],
        remark=lambda _: f"{told['entries']:,} entries, {told['itemsets']:,} itemsets, {told['cpu_s']:.1f} s of CPU",
    )


def cases() -> Iterator[Case]:
    """The cases of `make bench`."""
    from sfumato.rules.mining import mine

    folder()  # said before anything is measured
    name = "retail at 0.5 %, frequent itemsets"
    yield Case(f"{name}, beside pyfim", lambda data: mine(data, SUPPORT), peer=PYFIM, bar=1.5, prepare=retail, check=_right)
    yield Case(f"{name}, beside mlxtend", lambda data: mine(data, SUPPORT), peer=MLXTEND, bar=0.05, prepare=retail, check=_right)
    yield _hiding("SupportReduction", 0.22)
    yield _hiding("BorderBased", 0.15)


def long_cases() -> Iterator[Case]:
    """What takes longer."""
    yield _memory()


def many(path: Path) -> None:
    """A million baskets of about eleven of 20,000 items, the first ones frequent, and three that go together."""
    import numpy as np

    generator = np.random.Generator(np.random.PCG64(SEED))
    weights = 1 / np.arange(1, 20_001)
    sums = np.cumsum(weights / weights.sum())
    with path.open("w", encoding="ascii") as file:
        for _ in range(MANY // 10_000):
            lengths = generator.poisson(10, 10_000) + 1
            codes = np.searchsorted(sums, generator.random(int(lengths.sum())))
            for part in np.split(codes, np.cumsum(lengths)[:-1]):
                file.write(" ".join(map(str, part)) + (" 900 901 902" if part[0] % 50 == 0 else "") + "\n")


def main() -> None:
    """A million baskets from the file to what is published; prints what it took."""
    import time

    from sfumato.core.guarantees.hidden import Hidden
    from sfumato.data.transactions import Transactions
    from sfumato.rules.hiding.hide import hide
    from sfumato.rules.mining import mine

    with tempfile.TemporaryDirectory(prefix="sfumato-bench-") as place:
        many(Path(place) / "many.dat")
        begin = time.process_time()
        baskets = Transactions.read(Path(place) / "many.dat")
    itemsets = mine(baskets, SUPPORT)
    outcome = hide(baskets, Hidden((("900", "901", "902"),), SUPPORT))
    effects = outcome.details["side_effects"]
    resident = Path("/proc/self/status").read_text(encoding="ascii").split("VmHWM:")[1].split()[0]
    told = {
        "peak_mb": int(resident) * 1024 / 1e6,
        "cpu_s": time.process_time() - begin,
        "entries": int(baskets.codes.size),
        "itemsets": len(itemsets),
        "fault": None if effects.hiding_failures == 0 and effects.ghost_itemsets == 0 else "not hidden",
    }
    print(json.dumps(told))


if __name__ == "__main__":
    main()
