"""`make bench-peers`: the Python peers on the same input in the same run, taking turns with us.

pyCANON is in the environment of the tests; the others get environments of their own under `benchmarks/.peers`, because
they pin other versions. A peer that cannot be installed or fails is reported and left out. Writes `peers.json`: CPU
seconds of both, and wall time on two cores for questions about ten million rows.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import venv
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks import adult, itemsets, measuring, sessions
from benchmarks.adult import NoData
from benchmarks.harness import HEADER, Case, all_threads, line, measure, one_thread, row, summary, write
from benchmarks.run import warm

PLACE = Path(__file__).with_name(".peers")
RESULTS = Path(__file__).with_name("peers.json")
ROWS = 30_162
TASKS = Path(__file__).with_name("peer_tasks.py")
ITEMSET_TASKS = Path(__file__).with_name("itemset_peers.py")
STOP_AFTER_S = 300.0
#: The names by which pyCANON offers the measures of `measuring.guarantees`, in that order.
PYCANON = (
    "k_anonymity",
    "alpha_k_anonymity",
    "l_diversity",
    "entropy_l_diversity",
    "recursive_c_l_diversity",
    "basic_beta_likeness",
    "enhanced_beta_likeness",
    "t_closeness",
    "delta_disclosure",
)


#: What is installed for a peer.
PACKAGES = {
    "anjana": ("anjana",),
    "mlxtend": ("mlxtend",),
    "pyfim": ("pyfim",),
    "anonypy": ("anonypy", "pandas>=2.2,<3"),  # it does not say that it needs pandas
    "opendp": ("opendp[polars]==0.16", "polars==1.36.1"),  # the plans of other versions cannot be read
    "smartnoise": ("smartnoise-sql==1.0.10", "opendp<0.15", "pandas<3", "pyarrow"),
}


class PeerMissing(Exception):
    """A peer could not be installed, or did not finish."""


class Peer:
    """A task of a peer; each call is a process of its own that reports its CPU seconds."""

    reported = "cpu_s"
    stop_after_s = STOP_AFTER_S

    def __init__(self, python: str, task: str, rows: int, argument: str = "") -> None:
        self._command = [python, str(TASKS), task, str(rows), str(adult.folder()), argument]
        self.said: dict[str, Any] = {}

    def __call__(self) -> float:
        try:
            done = subprocess.run(
                self._command, check=True, capture_output=True, text=True, timeout=self.stop_after_s, env=self._environment()
            )
        except subprocess.TimeoutExpired:
            raise PeerMissing(f"not finished after {self.stop_after_s:g} s") from None
        except subprocess.CalledProcessError as error:
            reason = (error.stderr.strip().splitlines() or ["no message"])[-1]
            raise PeerMissing(f"failed: {reason}") from None
        self.said = json.loads(done.stdout.splitlines()[-1])
        return float(self.said[self.reported])

    def _environment(self) -> dict[str, str] | None:
        """As ours: one thread."""
        return None

    def remark(self, ours: str) -> str:
        """What both found."""
        theirs = ", ".join(f"{name} {value:,}" for name, value in self.said.items() if name != "cpu_s")
        return f"peer: {theirs}; ours: {ours}"


class QueryPeer(Peer):
    """A question about a Parquet file; each call is a process of its own on two cores that reports its wall time."""

    reported = "wall_s"
    stop_after_s = 1200.0

    def __init__(self, python: str, task: str, source: Path, argument: str = "") -> None:
        self._command = [python, str(TASKS), task, str(source), argument]
        self.said = {}

    def _environment(self) -> dict[str, str]:
        return all_threads()

    def beside(self, ours: dict[str, Any]) -> str:
        """What wall times alone do not say."""
        theirs, own = (f"{told['cpu_s']:.1f} s of CPU, {told['peak_mb']:,.0f} MB" for told in (self.said, ours))
        before = f"{self.said['import_cpu_s']:.1f} s more for imports"
        return f"peer: {theirs}, {before}, {self.said['groups']:,} groups; ours: {own}; load {sessions.load()}"


def environment(name: str) -> str:
    """The interpreter of a peer's environment, made on first use."""
    folder = PLACE / name
    python = folder / "bin" / "python"
    ready = folder / ".installed"
    wanted = " ".join(PACKAGES[name])
    if not ready.exists() or ready.read_text(encoding="utf-8") != wanted:
        print(f"installing {name} …", file=sys.stderr)
        venv.create(folder, with_pip=True, clear=True)
        command = [str(python), "-m", "pip", "install", "-qq", "--disable-pip-version-check", *PACKAGES[name]]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            reason = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise PeerMissing(f"{name} cannot be installed: {reason}")
        ready.write_text(wanted, encoding="utf-8")
    return str(python)


def pycanon() -> Iterator[Case]:
    """Each measure alone, with eight quasi-identifiers and occupation, on raw Adult."""
    from sfumato.measures.guarantees.measure import measure as measure_one

    rows, described = measuring.raw()
    for name, guarantee in zip(PYCANON, measuring.guarantees(), strict=True):
        yield Case(
            f"pyCANON, {name}",
            lambda _, guarantee=guarantee: measure_one(rows, described, guarantee),
            unit="s",
            peer=Peer(sys.executable, "pycanon", ROWS, name),
            peer_reports=True,
            repeats=3,
        )


def anjana() -> Iterator[Case]:
    """k = 5 over nine quasi-identifiers; ours finds the optimum, theirs is greedy."""
    import sfumato as sf

    python = environment("anjana")
    make = adult.fresh(adult.table())
    for limit in (0, 5):
        peer = Peer(python, "anjana", ROWS, str(limit))
        yield Case(
            f"anjana, k=5, {limit}% suppression",
            lambda people, limit=limit: sf.Lattice(suppression=limit / 100).run(people, [sf.KAnonymity(5)]),
            unit="s",
            peer=peer,
            peer_reports=True,
            prepare=make,
            remark=lambda outcome, peer=peer: peer.remark(_found(outcome)),
            repeats=3,
        )


def anonypy() -> Iterator[Case]:
    """Mondrian with k = 5 over eight quasi-identifiers, on the first rows of Adult: its time grows fast."""
    import sfumato as sf

    python = environment("anonypy")
    for rows in (2_000, 5_000):
        peer = Peer(python, "anonypy", rows)
        yield Case(
            f"anonypy, Mondrian k=5, {rows:,} rows",
            lambda people: sf.Mondrian(ranges_everywhere=True).run(people, [sf.KAnonymity(5)]),
            unit="s",
            peer=peer,
            peer_reports=True,
            prepare=adult.fresh(adult.table().slice(0, rows), sensitive=measuring.SENSITIVE),
            remark=lambda outcome, peer=peer: peer.remark(_found(outcome)),
            repeats=3,
        )


def opendp() -> Iterator[Case]:
    """Count and sum per city of at most ten rows of a user; ours adds the mean, and bounds by city."""
    note = "theirs without the mean, 10 rows of a user wherever they are"
    for numbers in ("reals", "whole numbers"):
        yield _question(f"OpenDP, ten million rows, {numbers}", "opendp", numbers, bar=1.0, repeats=3, note=note)


def smartnoise() -> Iterator[Case]:
    """Count, sum and mean per city of at most five rows of a user."""
    note = "theirs reads the file into pandas and SQLite"
    yield _question("SmartNoise, ten million rows", "smartnoise", "", bar=1 / 15, repeats=1, note=note)


class ItemsetPeer(Peer):
    """Mining a basket file; each call is a process of its own that reports its CPU seconds."""

    def __init__(self, name: str) -> None:
        place = itemsets.folder() / "retail.dat"
        self._command = [environment(name), str(ITEMSET_TASKS), name, str(place), str(itemsets.SUPPORT)]
        self.said = {}


def pyfim() -> Iterator[Case]:
    """Frequent itemsets of retail, beside the C of pyfim."""
    yield _itemsets("pyfim", 1.5)


def mlxtend() -> Iterator[Case]:
    """Frequent itemsets of retail, beside mlxtend over a table that is there already."""
    yield _itemsets("mlxtend", 0.05)


def _itemsets(name: str, bar: float) -> Case:
    from sfumato.rules.mining import mine

    peer = ItemsetPeer(name)
    return Case(
        f"{name}, frequent itemsets of retail at 0.5 %",
        lambda data: mine(data, itemsets.SUPPORT),
        unit="s",
        peer=peer,
        peer_reports=True,
        bar=bar,
        prepare=itemsets.retail,
        remark=lambda mined: peer.remark(f"itemsets {len(mined):,}"),
        repeats=3,
    )


def _question(title: str, name: str, argument: str, *, bar: float, repeats: int, note: str) -> Case:
    peer = QueryPeer(environment(name), name, _visits(), argument)
    told: dict[str, Any] = {}

    def ours(_: Any) -> float:
        told.update(sessions.answered(_visits(), 5))
        return float(told["wall_s"])

    return Case(
        f"{title}, per city: wall time",
        ours,
        unit="s",
        peer=peer,
        bar=bar,
        reports=True,
        peer_reports=True,
        check=lambda _: told["fault"],
        remark=lambda _: peer.beside(told),
        repeats=repeats,
        warm_run=False,
        note=note,
    )


@cache
def _visits() -> Path:
    """The rows of `queries`, made once a run."""
    from benchmarks.queries import made

    return made(PLACE / "visits.parquet", text=False)


def _found(outcome: Any) -> str:
    details = outcome.details
    return f"rows {details['records'] - details['suppressed']:,}, classes {details['classes']:,}"


PEERS: tuple[Callable[[], Iterator[Case]], ...] = (pycanon, anjana, anonypy, pyfim, mlxtend, opendp, smartnoise)


def main(arguments: list[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description="Measure the peers beside us.")
    parser.add_argument("--only", metavar="PATTERN", default="", help="cases whose name matches this regular expression")
    parser.add_argument("--output", type=Path, help=f"where to write the results (default: {RESULTS.name} beside this file)")
    chosen = parser.parse_args(arguments)
    one_thread()
    warm()
    print(line(HEADER))
    results = []
    for group in PEERS:
        try:
            for case in group():
                if re.search(chosen.only, case.name, re.IGNORECASE):
                    results.append(measure(case))
                    print(line(row(results[-1])), flush=True)
        except (PeerMissing, NoData) as missing:
            print(f"left out: {group.__name__}: {missing}", flush=True)
    print(f"\n{summary(results)}")
    if chosen.output or not chosen.only:
        write(results, chosen.output or RESULTS)
    return 0


if __name__ == "__main__":
    sys.exit(main())
