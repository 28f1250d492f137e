"""Notices: warnings of one category, about the line of whoever called, without a record value, never twice in a terminal."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.cli.main import run
from sfumato.core.errors import notify
from sfumato.dp.book import OtherLedger
from sfumato.kernels import compiled
from sfumato.workflow.attacking.registers import CodesNotApplied
from tests.workflow.people import files, people, schema, table

SECRET = "Xanthippe-4711"


def shown(count: int, *lines: str) -> list[warnings.WarningMessage]:
    """What Python shows of notices with its usual filter, when `notify` is called `count` times on one line, and on others."""
    globals().pop("__warningregistry__", None)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(count):
            notify("column 'a' tells much")
        for line in lines:
            exec(compile(line, f"<{line}>", "exec"), globals())
    return caught


def test_a_notice_is_shown_once_for_each_line_that_calls() -> None:
    assert len(shown(3)) == 1
    assert len(shown(3, "notify('column b tells much')", "\nnotify('column b tells much')")) == 3


def test_a_notice_is_about_the_line_of_the_caller() -> None:
    with pytest.warns(sf.SfumatoWarning, match="demonstration") as notices:
        sf.protect(people(100), k=5, seed=1)
    assert {Path(notice.filename).name for notice in notices} == {Path(__file__).name}


def test_notices_of_the_certificate_are_those_that_warn(tmp_path: Path) -> None:
    with pytest.warns(sf.SfumatoWarning) as notices:
        release = sf.protect(people(100), k=5, seed=1)
    told = [str(notice.message) for notice in notices]
    assert [text for text in told if "nothing is promised about" not in text] == list(release.certificate.notices)
    assert len(release.certificate.notices) > 0


def test_what_only_a_file_shows_warns_when_it_is_saved(tmp_path: Path) -> None:
    renamed = table(100).rename_columns(["name", "age", "zip", "sex", "visits", "=disease"])
    columns = {("=disease" if name == "disease" else name): column for name, column in schema().columns.items()}
    release = sf.protect(sf.read(renamed, sf.Schema(dataset="clinic", unit="record", columns=columns)), k=5)
    with pytest.warns(sf.SfumatoWarning, match="starts like a formula"):
        release.save(tmp_path / "out", format="csv")


def test_every_notice_is_of_the_one_category() -> None:
    assert issubclass(OtherLedger, sf.SfumatoWarning) and issubclass(CodesNotApplied, sf.SfumatoWarning)
    assert issubclass(sf.SfumatoWarning, UserWarning)


def test_notices_can_be_errors_and_then_nothing_is_entered_or_saved(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.db"
    with warnings.catch_warnings():
        warnings.simplefilter("error", sf.SfumatoWarning)
        with pytest.raises(sf.SfumatoWarning):
            sf.protect(people(100), k=5, seed=1, ledger=ledger)
        assert sf.Ledger.open(ledger).releases("clinic") == []
        warnings.simplefilter("ignore", sf.SfumatoWarning)
        release = sf.protect(people(100), k=5, seed=1)
        warnings.simplefilter("error", sf.SfumatoWarning)
        with pytest.raises(sf.SfumatoWarning, match="not signed"):
            release.save(tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_no_notice_has_a_value_of_a_record(tmp_path: Path) -> None:
    rows = table(120)
    rows = rows.set_column(0, "name", pa.array([f"{SECRET} {row}" for row in range(120)]))
    rows = rows.set_column(5, "disease", pa.array([f"={SECRET} {row}" for row in range(120)]))
    plain = schema(name=sf.Column(role="plain"))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        release = sf.protect(sf.read(rows, plain), k=5, seed=1)
        release.save(tmp_path / "out", format="csv")
        sf.check(release.data, schema=release.schema)
    texts = [str(each.message) for each in caught if issubclass(each.category, sf.SfumatoWarning)]
    assert any("published as it is" in text for text in texts) and any("formula" in text for text in texts)
    assert not any(SECRET in text for text in texts)


def test_a_command_prints_a_notice_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, described = files(tmp_path, 100)
    arguments = ["protect", str(data), "--schema", str(described), "--k", "5", "--l", "disease=2", "--seed", "1", "--no-ledger"]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert run([*arguments, "-o", str(tmp_path / "out")]) == 0
    printed = capsys.readouterr()
    notices = json.loads((tmp_path / "out" / "public" / "certificate.json").read_text())["notices"]
    assert notices and all(printed.out.count(notice) == 1 for notice in notices)
    assert printed.err == "" and [each for each in caught if issubclass(each.category, sf.SfumatoWarning)] == []


def test_the_hint_is_a_warning_in_python_and_comes_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("SFUMATO_KERNELS", raising=False)
    monkeypatch.setattr(compiled, "available", lambda: False)
    monkeypatch.setattr(compiled, "_told", False)
    with pytest.warns(sf.SfumatoWarning, match="`sfumato warm` once"):
        compiled.tell_of_warm()
    for told in (True, False):  # this process, and another one
        monkeypatch.setattr(compiled, "_told", told)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            compiled.tell_of_warm()


@pytest.mark.slow
def test_somebody_who_never_compiled_is_told_once_and_nothing_compiles(tmp_path: Path) -> None:
    """In a process of its own with a cache of its own, under a copy of the sources that nobody warmed."""
    import shutil

    source = Path(sf.__file__).parent
    shutil.copytree(source, tmp_path / "sfumato", ignore=shutil.ignore_patterns("*.nbi", "*.nbc", "*.stamp"))
    script = (
        "import sys, sfumato as sf\n"
        "people = sf.read(sf.data.sample_table(300), schema=sf.data.sample_schema())\n"
        "sf.protect(people, k=3, ledger=None)\n"
        "print('llvmlite' in sys.modules)\n"
    )
    environment = {
        name: value for name, value in os.environ.items() if name not in ("SFUMATO_KERNELS", "PYTHONDONTWRITEBYTECODE")
    }
    environment |= {"PYTHONPATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    environment |= {"SFUMATO_KEY": str(tmp_path / "owner.key")}

    def told(*arguments: str) -> tuple[str, int]:
        process = subprocess.run(
            [sys.executable, *arguments], capture_output=True, text=True, check=True, env=environment, cwd=tmp_path
        )
        return process.stdout, process.stderr.count("`sfumato warm`")

    assert told("-m", "sfumato", "demo", "shown", "--rows", "300")[1] == 1
    assert told("-c", script) == ("False\n", 0)
    compiling = (
        "from sfumato.kernels import compiled as c; c.every_kernel()[0].compile(); c._folders()[0].joinpath(c._STAMP).touch()"
    )
    told("-c", compiling)
    left = {path for ending in ("*.nbi", "*.nbc", "*.stamp") for path in tmp_path.rglob(ending)}
    assert {path.suffix for path in left} == {".nbi", ".nbc", ".stamp"}
    assert json.loads(told("-m", "sfumato", "warm", "--remove", "--json")[0]) == {"removed": len(left)}
    assert not any(path.exists() for path in left) and not (tmp_path / "cache" / "sfumato").exists()
