"""The services themselves: they start, answer, and stay on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest


@pytest.mark.postgres
def test_postgres_answers(postgres_url: str) -> None:
    import psycopg

    with psycopg.connect(postgres_url) as connection:
        assert connection.execute("SELECT 6 * 7").fetchone() == (42,)


@pytest.mark.postgres
def test_postgres_listens_on_no_outside_address(postgres_url: str) -> None:
    import psycopg

    with psycopg.connect(postgres_url) as connection:
        row = connection.execute("SHOW listen_addresses").fetchone()
    assert row is not None
    assert set(row[0].split(",")) <= {"", "127.0.0.1", "localhost", "::1"}


@pytest.mark.spark
def test_spark_counts(spark: Any) -> None:
    assert spark.range(1000).count() == 1000


@pytest.mark.spark
def test_spark_has_no_web_page(spark: Any) -> None:
    assert spark.sparkContext.uiWebUrl is None


@pytest.mark.e2e
def test_chromium_shows_a_page(chromium: Any) -> None:
    page = chromium.new_page()
    try:
        page.set_content("<title>hello</title><button onclick=\"document.title = 'clicked'\">press</button>")
        page.get_by_role("button", name="press").click()
        assert page.title() == "clicked"
    finally:
        page.close()


@pytest.mark.data
def test_real_data_has_its_description(data_dir: Path) -> None:
    assert (data_dir / "README.md").is_file()
