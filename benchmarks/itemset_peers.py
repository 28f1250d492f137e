"""What peers need to mine a basket file, run by the interpreter of their own environment: prints CPU seconds as JSON.

`python itemset_peers.py PEER FILE SUPPORT`. The baskets are lists in memory before the clock starts, and a run on the first ones
goes before; mlxtend's table of truth values is made before the clock starts, too.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path


def pyfim(baskets: list[list[str]], support: float) -> Callable[[], int]:
    """Eclat in C."""
    from fim import eclat

    return lambda: len(eclat(baskets, target="s", supp=100 * support, zmin=1))


def mlxtend(baskets: list[list[str]], support: float) -> Callable[[], int]:
    """FP-growth over a sparse table."""
    import pandas as pd
    from mlxtend.frequent_patterns import fpgrowth
    from mlxtend.preprocessing import TransactionEncoder

    encoder = TransactionEncoder()
    table = encoder.fit(baskets).transform(baskets, sparse=True)
    frame = pd.DataFrame.sparse.from_spmatrix(table, columns=encoder.columns_)
    return lambda: len(fpgrowth(frame, min_support=support))


def main() -> None:
    """Read, warm up, measure."""
    name, place, support = sys.argv[1], Path(sys.argv[2]), float(sys.argv[3])
    baskets = [line.split() for line in place.read_text(encoding="utf-8").splitlines()]
    peers = {"pyfim": pyfim, "mlxtend": mlxtend}
    peers[name](baskets[:2000], support)()
    work = peers[name](baskets, support)
    before = time.process_time()
    found = work()
    print(json.dumps({"cpu_s": time.process_time() - before, "itemsets": found}))


if __name__ == "__main__":
    main()
