"""Versions of Spark: those that were tried are read from, any other is refused in one sentence."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pyspark
import pytest

import sfumato as sf
from sfumato.core.errors import Unsupported
from sfumato.engines.spark.sessions import VERSIONS, check_version


def known(version: str) -> bool:
    return tuple(int(part) for part in version.split(".")[:2]) in VERSIONS


@pytest.mark.parametrize("version", ["4.0.0", "4.0.5", "4.1.4", "4.1.0.dev0"])
def test_versions_that_were_tried_are_read_from(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pyspark, "__version__", version)
    check_version(SimpleNamespace(version=version))


@pytest.mark.parametrize("version", ["3.5.9", "3.5.9-amzn-1", "2.4", "4.2.0", "5.0.1"])
def test_other_versions_are_refused(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = ".".join(version.split(".")[:2])
    monkeypatch.setattr(pyspark, "__version__", "4.0.5")
    with pytest.raises(Unsupported, match=f"the Spark session is version {shown}; sfumato reads from Spark 4.0 and 4.1"):
        check_version(SimpleNamespace(version=version))
    monkeypatch.setattr(pyspark, "__version__", version)
    with pytest.raises(Unsupported, match=f"pyspark is version {shown}"):
        check_version(SimpleNamespace(version="4.0.5"))


@pytest.mark.spark
def test_the_running_session(spark: Any) -> None:
    """`make spark-versions` comes here with every version, an older one too."""
    if known(spark.version):
        assert len(sf.read(spark.range(3))) == 3
        return
    for source, options in (
        (spark.range(3), {}),
        ("people", {"engine": "spark", "session": spark}),
        ("people", {"engine": "spark"}),
    ):
        with pytest.raises(Unsupported, match="sfumato reads from Spark 4.0 and 4.1"):
            sf.read(source, **options)
