"""Jobs about one table on every core: each worker is a process of its own that reads jobs and writes results as lines of JSON.

The rows reach the workers in a file without a name, which no killed process leaves behind; all workers share its pages. A worker
ends when its input ends, and with the process that started it. What comes back is what the worker answers, and nothing else.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

from sfumato.core.certificate import plain
from sfumato.core.errors import SfumatoError
from sfumato.core.files import memory_file
from sfumato.core.plain_data import Plain
from sfumato.core.stopping import end_with_parent
from sfumato.data.microdata import Microdata
from sfumato.data.schema import Schema
from sfumato.kernels.compiled import tell_of_warm


def can_share_rows() -> bool:
    """Whether a process can hand an open file to those it starts, as in_processes does."""
    return os.name == "posix"


def in_processes(worker: str, people: Microdata, about: Plain, jobs: Sequence[Plain], count: int) -> Iterator[tuple[int, Plain]]:
    """The place and the result of each job as it ends, done by `count` processes that run the module `worker`.

    `about` is what every worker gets before its first job. A worker that dies gives its job back to those that still serve.
    """
    waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
    ended: queue.SimpleQueue[tuple[int, Plain] | None] = queue.SimpleQueue()
    lines = [json.dumps(job) for job in jobs]
    for place in range(len(lines)):
        waiting.put(place)
    tell_of_warm()  # nobody hears the workers
    with _shared_rows(people) as rows, _workers(worker, rows, people.schema, about, count) as processes:
        for process in processes:
            threading.Thread(target=_feed, args=(process, lines, waiting, ended), daemon=True).start()
        left, serving = len(lines), count
        while left:
            result = ended.get()
            if result is None:
                serving -= 1
                if not serving:
                    raise SfumatoError(
                        "the worker processes ended too early, perhaps because memory ran out. "
                        "Run it again with fewer workers; a comparison goes on where it was."
                    )
                continue
            left -= 1
            yield result


def serve(prepared: Callable[[Microdata, Plain], Callable[[Plain], Plain]]) -> None:
    """The whole of a worker: what `prepared` makes of the rows and of `about` answers each job."""
    warnings.simplefilter("ignore")
    end_with_parent()
    first = json.loads(sys.stdin.readline())
    answer = prepared(_opened(int(sys.argv[1]), first["schema"]), first["about"])
    answers = sys.stdout
    sys.stdout = sys.stderr  # nothing but answers may stand between the lines
    for line in sys.stdin:
        try:
            result = answer(json.loads(line))
        except SfumatoError as error:
            result = {"refused": str(error)}
        except Exception as error:  # its message might hold a value
            result = {"refused": f"an internal error happened ({type(error).__name__})"}
        answers.write(json.dumps(plain(result), allow_nan=False) + "\n")
        answers.flush()


def _feed(
    process: subprocess.Popen[str],
    lines: Sequence[str],
    waiting: queue.SimpleQueue[int],
    ended: queue.SimpleQueue[tuple[int, Plain] | None],
) -> None:
    """Feed one worker until no job is left, and say so."""
    while True:
        try:
            place = waiting.get_nowait()
        except queue.Empty:
            ended.put(None)
            return
        try:
            result = json.loads(_answer(process, lines[place]))
        except (OSError, ValueError):
            waiting.put(place)
            ended.put(None)
            return
        ended.put((place, result))


def _answer(process: subprocess.Popen[str], line: str) -> str:
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
def _workers(worker: str, rows: int, schema: Schema, about: Plain, count: int) -> Iterator[list[subprocess.Popen[str]]]:
    """Worker processes, which are gone afterwards whatever happened."""
    # one thread each: together they use all cores
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    command = [sys.executable, "-P", "-m", worker, str(rows)]
    first = json.dumps({"schema": {**schema.model_dump(mode="json"), "folder": schema.folder}, "about": about})
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
                _send(process, first)
        yield processes
    finally:
        for process in processes:
            process.kill()
        for process in processes:
            process.communicate()


def _opened(rows: int, schema: Plain) -> Microdata:
    """The rows behind a descriptor."""
    import mmap

    import pyarrow as pa

    from sfumato.engines.sources import read

    mapped = pa.py_buffer(mmap.mmap(rows, 0, access=mmap.ACCESS_READ))  # all workers share the pages
    table = pa.ipc.open_file(pa.BufferReader(mapped)).read_all()
    return read(table, Schema.model_validate(schema))
