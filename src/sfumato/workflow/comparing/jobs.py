"""The work of a comparison: mask, measure, remember; on every core, and never twice.

Each worker is a process of its own that reads jobs and writes scores as lines of JSON; nothing but scores comes back or is
kept. The rows reach the workers in a file without a name, which no killed process leaves behind. What was measured is
remembered under a keyed digest of data, method, measures and seed, so that a comparison that was stopped goes on where it was.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import math
import os
import queue
import secrets
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sfumato.core.certificate import canonical, plain
from sfumato.core.errors import GuaranteeNotMet, InputError, SfumatoError
from sfumato.core.progress import Progress
from sfumato.core.temporary import memory_file
from sfumato.core.view import AnyMeasure, Score
from sfumato.data.masked import Masked
from sfumato.data.microdata import Microdata
from sfumato.data.schema import Schema
from sfumato.workflow import named
from sfumato.workflow.comparing.grid import Method, fitted, method_of

#: Fewer jobs than this are done in this process: starting others would take longer.
_FEW_JOBS = 3
#: What is remembered of a method.
_FIELDS = {"risk", "loss", "scores", "parts", "risk_measure", "left", "rows", "seconds"}
_KEY_BYTES = 32


@dataclass(frozen=True, eq=False)
class Job:
    """One method with its seed; `number` is its place among the jobs of a comparison."""

    number: int
    mask: Method = field(repr=False)
    seed: str


@dataclass(frozen=True)
class Measures:
    """What is measured of each masked table; the first two are the axes of the map."""

    risk: AnyMeasure
    loss: AnyMeasure
    unaligned_risk: AnyMeasure
    others: tuple[AnyMeasure, ...] = ()

    def described(self) -> dict[str, Any] | None:
        """As plain data for another process; None where a measure holds something that is no plain data."""
        try:
            description = {
                "risk": _described(self.risk),
                "loss": _described(self.loss),
                "unaligned_risk": _described(self.unaligned_risk),
                "others": [_described(measure) for measure in self.others],
            }
            json.dumps(description, allow_nan=False)
        except (TypeError, ValueError, SfumatoError):
            return None
        return description

    @classmethod
    def of(cls, description: Mapping[str, Any]) -> Measures:
        """From what `described` says."""
        others = tuple(named.measure(each) for each in description["others"])
        return cls(
            named.measure(description["risk"]),
            named.measure(description["loss"]),
            named.measure(description["unaligned_risk"]),
            others,
        )


def evaluate(people: Microdata, job: Job, measures: Measures) -> dict[str, Any]:
    """Mask and measure once: `risk`, `loss`, further `scores`, their `parts`; or why the method was `refused`."""
    begun = time.process_time()
    mask, left = fitted(job.mask, people)
    try:
        masked = mask.apply(people, seed=job.seed).result
        by = measures.risk if masked.rows is not None else measures.unaligned_risk
        risk = by.score(people, masked)
        loss = measures.loss.score(people, masked)
        others = [score for measure in measures.others if (score := _further(measure, people, masked)) is not None]
    except (InputError, GuaranteeNotMet) as error:
        return {"refused": str(error)}
    scores = [risk, loss, *others]
    unknown = [score.measure for score in scores[:2] if not math.isfinite(score.value)]
    if unknown:
        return {"refused": f"{unknown[0]} of the masked table is no number"}
    return {
        "risk": _toward_lower(risk),
        "loss": _toward_lower(loss),
        "scores": {score.measure: plain(score.value) for score in scores},
        "parts": {score.measure: plain(dict(score.parts)) for score in scores},
        "risk_measure": risk.measure,
        "left": list(left),
        "rows": len(masked),
        "seconds": time.process_time() - begun,
    }


def _further(measure: AnyMeasure, people: Microdata, masked: Masked) -> Score | None:
    """A score that is no axis of the map; where it cannot be measured (synthetic rows have no record) the method stays."""
    try:
        return measure.score(people, masked)
    except InputError:
        return None


class Memory:
    """Scores that were measured before, one small file each; names tell nothing to whoever lacks the key beside them."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self._key = b"" if folder is None else _key_in(folder)

    def name(self, *parts: Any) -> str:
        """The name of a result by everything that it depends on."""
        return hmac.new(self._key, canonical([plain(part) for part in parts]), hashlib.sha256).hexdigest()

    def digest(self, people: Microdata) -> str:
        """A keyed digest of the rows in their order, and of what the schema says about them."""
        import pyarrow as pa

        running = hmac.new(self._key, canonical(people.schema.model_dump(mode="json")), hashlib.sha256)
        for column in people.schema.columns.values():
            if column.hierarchy is not None and column.hierarchy.file is not None:
                running.update(_content(Path(people.schema.folder or "") / column.hierarchy.file))
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, people.relation.schema()) as writer:  # a batch alone would leave out its texts
            for batch in people.relation.batches():
                writer.write_batch(batch)
        running.update(sink.getvalue())
        return running.hexdigest()

    def get(self, name: str) -> dict[str, Any] | None:
        """What is remembered; a damaged file counts as nothing."""
        if self.folder is None:
            return None
        try:
            stored = json.loads((self.folder / f"{name}.json").read_bytes())
        except (OSError, ValueError):
            return None
        return stored if isinstance(stored, dict) and set(stored) == _FIELDS else None

    def keep(self, name: str, result: Mapping[str, Any]) -> None:
        """Remember a result; a folder that cannot be written to is no reason to stop."""
        if self.folder is None:
            return
        path = self.folder / f"{name}.json"
        try:
            hidden = path.with_suffix(f".{os.getpid()}.part")
            with open(os.open(hidden, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
                file.write(canonical(plain(dict(result))))
            hidden.replace(path)
        except OSError:
            return


def run_all(
    people: Microdata,
    jobs: Sequence[Job],
    measures: Measures,
    workers: int,
    progress: Progress,
    done: Callable[[Job, dict[str, Any]], None],
) -> None:
    """Do every job, on as many processes as `workers` says; `done` hears of each as it ends."""
    description = measures.described()
    apart = [job for job in jobs if description is not None and _is_public(job.mask)]
    here = [job for job in jobs if job not in apart]
    count = min(workers, len(apart))
    if count < 2 or len(apart) < _FEW_JOBS:
        here, apart = list(jobs), []
    finished = 0
    if apart and description is not None:
        for job, result in _in_processes(people, apart, description, count):
            finished += 1
            done(job, result)
            progress("comparing", finished, len(jobs))
    for job in here:
        done(job, evaluate(people, job, measures))
        finished += 1
        progress("comparing", finished, len(jobs))


def _in_processes(
    people: Microdata, jobs: Sequence[Job], description: Mapping[str, Any], count: int
) -> Iterator[tuple[Job, dict[str, Any]]]:
    waiting: queue.SimpleQueue[Job] = queue.SimpleQueue()
    ended: queue.SimpleQueue[tuple[Job, dict[str, Any]] | None] = queue.SimpleQueue()
    for job in jobs:
        waiting.put(job)
    with _shared_rows(people) as rows, _workers(rows, people.schema, description, count) as processes:
        threads = [threading.Thread(target=_serve, args=(process, waiting, ended), daemon=True) for process in processes]
        for thread in threads:
            thread.start()
        left, serving = len(jobs), count
        while left:
            result = ended.get()
            if result is None:
                serving -= 1
                if not serving:
                    raise SfumatoError(
                        "a process that compared methods ended too early, perhaps because memory ran out. "
                        "The scores measured so far are kept: run it again with fewer workers."
                    )
                continue
            left -= 1
            yield result


def _serve(
    process: subprocess.Popen[str], waiting: queue.SimpleQueue[Job], ended: queue.SimpleQueue[tuple[Job, dict[str, Any]] | None]
) -> None:
    """Feed one worker until no job is left, and say so; a worker that dies gives its job back to those that still serve."""
    while True:
        try:
            job = waiting.get_nowait()
        except queue.Empty:
            ended.put(None)
            return
        try:
            result = json.loads(_asked(process, json.dumps({"method": plain(job.mask.described()), "seed": job.seed})))
        except (OSError, ValueError):
            waiting.put(job)
            ended.put(None)
            return
        ended.put((job, result))


def _asked(process: subprocess.Popen[str], line: str) -> str:
    _send(process, line)
    if process.stdout is None:
        raise OSError("the worker has no pipes")
    return process.stdout.readline()


def _send(process: subprocess.Popen[str], line: str) -> None:
    if process.stdin is None:
        raise OSError("the worker has no pipes")
    process.stdin.write(line + "\n")
    process.stdin.flush()


@contextmanager
def _shared_rows(people: Microdata) -> Iterator[int]:
    """The descriptor of a file without a name that holds the rows for the workers."""
    import pyarrow as pa

    descriptor = memory_file()
    try:
        table = people.table()
        with open(descriptor, "wb", closefd=False) as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
        del table
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def _workers(rows: int, schema: Schema, measures: Mapping[str, Any], count: int) -> Iterator[list[subprocess.Popen[str]]]:
    """Worker processes, which are gone afterwards whatever happened."""
    # one thread each: together they use all cores
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    command = [sys.executable, "-P", "-m", "sfumato.workflow.comparing.worker", str(rows)]
    description = json.dumps({"schema": {**schema.model_dump(mode="json"), "folder": schema.folder}, "measures": measures})
    processes: list[subprocess.Popen[str]] = []
    try:
        for _ in range(count):
            process = subprocess.Popen(  # noqa: S603  (our own module)
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                env=environment,
                pass_fds=(rows,),
            )
            processes.append(process)
        for process in processes:
            with suppress(OSError):  # a worker that died already is noticed when it is asked
                _send(process, description)
        yield processes
    finally:
        for process in processes:
            process.kill()
        for process in processes:
            process.communicate()


def open_shared(rows: int, description: str) -> tuple[Microdata, Measures]:
    """What a worker is given: the rows behind a descriptor, and schema and measures as a line of JSON."""
    import mmap

    import pyarrow as pa

    from sfumato.engines.sources import read

    spec = json.loads(description)
    mapped = pa.py_buffer(mmap.mmap(rows, 0, access=mmap.ACCESS_READ))  # all workers share the pages
    table = pa.ipc.open_file(pa.BufferReader(mapped)).read_all()
    return read(table, Schema.model_validate(spec["schema"])), Measures.of(spec["measures"])


def _described(measure: AnyMeasure) -> dict[str, Any]:
    from sfumato.core.params import parameters

    key = getattr(measure, "key", None)
    if key is None:
        raise InputError("a measure without a key")
    description = {"name": key, **parameters(measure)}
    if named.measure(description) != measure:
        raise InputError("a measure that its parameters do not describe")
    return description


def _is_public(mask: Method) -> bool:
    """Whether another process finds the mask by its name and makes the same one from its parameters."""
    try:
        return bool(method_of(json.loads(json.dumps(plain(mask.described())))) == mask)
    except (SfumatoError, TypeError, ValueError):
        return False


def _toward_lower(score: Score) -> float:
    return float(score.value if score.better == "lower" else 1.0 - score.value)


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # whoever needs it will say so
        return b""


def _key_in(folder: Path) -> bytes:
    """The key of a folder, made on first use; two that make it at once agree on one."""
    path = folder / "key"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not path.exists():
            hidden = folder / f"key.{os.getpid()}.{secrets.token_hex(4)}"
            with open(os.open(hidden, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(os.urandom(_KEY_BYTES))
            with suppress(FileExistsError):
                os.link(hidden, path)
            hidden.unlink()
        key = path.read_bytes()
    except OSError as error:
        raise InputError(
            f"the folder '{folder}' cannot keep results ({error.strerror}); name another, or pass cache=False"
        ) from None
    if len(key) != _KEY_BYTES:
        raise InputError(f"'{path}' is not the key of such a folder; remove the folder '{folder}' and what it remembers")
    return key
