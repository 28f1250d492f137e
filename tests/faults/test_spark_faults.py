"""Publishing while a part of Spark dies: the same rows, or nothing at all, and never a value of a record in a message."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import sfumato as sf
from sfumato.engines.digests.row_digest import table_sums
from tests.faults.spark_faults import ROWS
from tests.faults.test_disk_and_kill import ROOT
from tests.workflow.people import schema, table

pytestmark = [pytest.mark.spark, pytest.mark.slow]

CANARIES = ("person 0", "asthma")


def outcomes(master: str, folder: Path, *scenarios: str) -> dict[str, str]:
    """What a process with a Spark of its own says of each scenario."""
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}"}
    command = [sys.executable, "-m", "tests.faults.spark_faults", master, str(folder), *scenarios]
    output = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, cwd=ROOT, check=False)
    assert not any(canary in output.stdout + output.stderr for canary in CANARIES)
    assert output.returncode == 0, output.stderr[-2_000:]
    said: dict[str, str] = json.loads(output.stdout.splitlines()[-1])
    return said


def expected() -> str:
    release = sf.protect(sf.read(table(ROWS), schema()), [sf.KAnonymity(5)], sf.Lattice(suppression=0.05))
    return table_sums(release.data).content_digest()


@pytest.fixture(autouse=True)
def needs_java(spark: object) -> None:
    """Where there is no Spark at all the tests are skipped as the others are."""


def test_workers_that_die_an_answer_too_large_and_a_jvm_that_is_killed(tmp_path: Path) -> None:
    """`local[2,3]`: a task is tried three times; the driver takes answers of 1 MB."""
    said = outcomes("local[2,3]", tmp_path, "steady", "dies_once", "dies_always", "large_answer", "jvm_killed")
    assert (tmp_path / "died").exists()
    assert said.pop("steady") == said.pop("dies_once") == expected()
    for name, message in said.items():
        assert "SourceError: " in message, name
        assert message.count("Traceback") == 1, name  # alone, without what led to it
    assert "Nothing was published" in said["jvm_killed"]


@pytest.mark.stress
def test_executors_of_a_cluster_that_are_killed_in_a_shuffle_and_speculation(tmp_path: Path) -> None:
    """Two executors in processes of their own, one of them killed; slow tasks are started twice."""
    said = outcomes("local-cluster[2,1,1024]", tmp_path, "steady", "executor_killed", "executor_killed_with_rows")
    assert said["steady"] == said["executor_killed"] == expected()
    assert said["executor_killed_with_rows"] == expected() or "SourceError: " in said["executor_killed_with_rows"]
