"""What is asked of a Spark session before and around its questions: a known version, plans that give the same rows every
time, and silence about values.

Spark writes the record at which a task failed to its log. While one of our questions runs, the loggers of the driver are off;
the logs of executors and of a Connect server are on other machines and stay the cluster's business.
"""

from __future__ import annotations

import re
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeAlias

from sfumato.core.errors import SourceError, Unsupported, reported_as
from sfumato.engines.time_limits import stopped_in_time

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: A DataFrame, classic or of a Connect session; pyspark has no types.
SparkFrame: TypeAlias = Any

#: The versions that the tests run with, classic and Connect.
VERSIONS = ((4, 0), (4, 1))

#: Functions that give another value when a task runs again; a Connect server tells no more than their names.
_DRAWN = (
    "input_file_block_length|input_file_block_start|input_file_name|java_method|monotonically_increasing_id|rand|randn|random"
    "|randstr|reflect|shuffle|spark_partition_id|try_reflect|uniform|uuid"
)
_DRAWING = re.compile(rf"\b(?:{_DRAWN})\(", re.IGNORECASE)
#: In an analysed plan a function of the user's own has a number behind its parentheses; so has a column that is named after
#: one, but such a name is given somewhere (`AS sum(x)#12`).
_NUMBERED = re.compile(r"\)#(\d+)")
_NAMED = re.compile(r" AS .*?#(\d+)")
#: Python's side of Spark logs the message of an error too.
_PYTHON_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")


def check_version(session: Any) -> None:  # pyspark has no types
    """Refuse a Spark that these questions were not tried on, before it fails in some other way."""
    import pyspark

    listed = " and ".join(f"{major}.{minor}" for major, minor in VERSIONS)
    for what, version in (("the package pyspark", pyspark.__version__), ("the Spark session", session.version)):
        if _numbers(version) not in VERSIONS:
            running = ".".join(map(str, _numbers(version)))
            raise Unsupported(f"{what} is version {running}; sfumato reads from Spark {listed}. Use one of these.")


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", str(version))[:2])


def is_connect(frame: object) -> bool:
    """Whether the frame lives behind a Connect server, whose plans are out of reach."""
    return type(frame).__module__.startswith("pyspark.sql.connect")


def check_deterministic(frame: SparkFrame) -> None:
    """Refuse a frame whose rows may be others when they are computed again, which Spark does for every question."""
    if is_connect(frame):
        description = frame._explain_string(extended=True)
        analysed = description.partition("== Analyzed Logical Plan ==")[2].partition("== Optimized Logical Plan ==")[0]
        own = set(_NUMBERED.findall(analysed)) - set(_NAMED.findall(analysed))
        drawn = bool(own) or _DRAWING.search(analysed) is not None
    else:
        drawn = not frame._jdf.queryExecution().analyzed().deterministic()
    if drawn:
        raise Unsupported(
            "this Spark frame may have other rows each time it is computed: it uses rand, uuid, monotonically_increasing_id or a "
            "function that is not known to be deterministic. Write it to a table first, or pass frame.localCheckpoint()."
        )


@contextmanager
def asked_of(session: object) -> Iterator[None]:
    """Spark quotes values in its errors and in its log; ours name the class of the error alone. Whatever runs inside ends on the
    cluster when its time is over, or on Ctrl-C."""
    with _cancelled_in_time(session), reported_as(_unanswered), _silent(session):
        yield


@contextmanager
def _cancelled_in_time(session: Any) -> Iterator[None]:  # pyspark has no types
    """Jobs of this thread carry a tag by which they are cancelled.

    Tags of a classic session do not reach the thread that collects an answer as Arrow; those of its context do.
    """
    tag = f"sfumato-{uuid.uuid4().hex}"
    context = getattr(session, "_sc", None)
    if context is not None:
        add, remove, cancel = context.addJobTag, context.removeJobTag, context.cancelJobsWithTag
    else:
        add, remove, cancel = session.addTag, session.removeTag, session.interruptTag
    with stopped_in_time(lambda: cancel(tag), "Spark"):
        with suppress(Exception):  # a session that is gone says so when it is asked
            add(tag)
        try:
            yield
        finally:
            with suppress(Exception):
                remove(tag)


def _unanswered(error: Exception) -> SourceError:
    return SourceError(f"Spark could not answer the question ({condition_of(error)})")


def condition_of(error: Exception) -> str:
    """What Spark calls an error, without its message."""
    return str(getattr(error, "getCondition", lambda: None)() or type(error).__name__)


_lock = threading.Lock()
#: Java leaves methods of more bytes than these uncompiled, which makes them many times slower. Spark joins the steps of a stage
#: into one method up to a limit of its own, 65,535 unless somebody sets it; beyond the limit it writes one method per step, and
#: takes long ones apart.
_LONGEST_METHOD, _METHOD_LIMIT = 8_000, "spark.sql.codegen.hugeMethodLimit"
_limits: dict[int, tuple[int, str | None]] = {}


@contextmanager
def short_methods(session: SparkSession) -> Iterator[None]:
    """What Spark computes inside is split into methods that Java compiles; afterwards the session is as it was. A session whose
    settings are not to be changed is as fast as it is."""
    with _lock, suppress(Exception):
        asking, before = _limits.get(id(session)) or (0, session.conf.get(_METHOD_LIMIT, None))
        if not asking and (before is None or int(before) > _LONGEST_METHOD):
            session.conf.set(_METHOD_LIMIT, str(_LONGEST_METHOD))
        _limits[id(session)] = (asking + 1, before)
    try:
        yield
    finally:
        with _lock, suppress(Exception):
            asking, before = _limits.pop(id(session))
            if asking > 1:
                _limits[id(session)] = (asking - 1, before)
            elif before is None:
                session.conf.unset(_METHOD_LIMIT)
            else:
                session.conf.set(_METHOD_LIMIT, before)


_asking = 0
_before: list[tuple[Any, Any]] = []


@contextmanager
def _silent(session: Any) -> Iterator[None]:
    """Turn the loggers off while some question runs, and back to what they were after the last one."""
    global _asking
    with _lock:
        _asking += 1
        if _asking == 1:
            _before.extend(_turned_off(session))
    try:
        yield
    finally:
        with _lock:
            _asking -= 1
            if _asking == 0:
                while _before:
                    turn, level = _before.pop()
                    turn(level)


def _turned_off(session: Any) -> Iterator[tuple[Any, Any]]:
    from pyspark.logger import PySparkLogger

    for name in _PYTHON_LOGGERS:
        logger = PySparkLogger.getLogger(name)
        yield (lambda off, logger=logger: setattr(logger, "disabled", off)), logger.disabled
        logger.disabled = True
    with suppress(Exception):  # another backend than Spark's own: its owner knows what it writes
        yield from _turned_off_in_java(session)


def _turned_off_in_java(session: Any) -> Iterator[tuple[Any, Any]]:
    context = getattr(session, "_sc", None)
    if context is None or context._jvm is None:
        return
    logging = context._jvm.org.apache.logging.log4j
    configurator, off = logging.core.config.Configurator, logging.Level.OFF
    held = logging.LogManager.getContext(False).getConfiguration().getLoggers()
    explicit = {str(name): held[name].getExplicitLevel() for name in held if str(name).startswith("org.apache.spark")}
    for name, level in {"org.apache.spark": None, **explicit}.items():
        yield (lambda level, name=name: configurator.setLevel(name, level)), level
        configurator.setLevel(name, off)
