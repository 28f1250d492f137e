"""A promise that compares with the original cannot be judged from the release alone, whichever way the numbers point."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pytest

import sfumato as sf
from sfumato.cli.main import run


def release() -> tuple[sf.Release, pa.Table, sf.BetaLikeness]:
    """Three classes: the one without the rare value is suppressed, so the rare value is more frequent in what is left."""
    towns = ["a"] * 10 + ["b"] * 10 + ["c"] * 3
    ill = (["rare"] * 4 + ["usual"] * 6) + (["rare"] * 1 + ["usual"] * 9) + ["other"] * 3
    table = pa.table({"town": towns, "ill": ill})
    schema = sf.Schema(dataset="people", columns={"town": sf.Column(role="quasi"), "ill": sf.Column(role="sensitive")})
    promise = sf.BetaLikeness(0.9, "ill")
    made = sf.protect(table, [sf.KAnonymity(4), promise], sf.Lattice(suppression=0.2), schema=schema, seed=1)
    return made, table, promise


def test_without_the_original_it_cannot_be_judged_and_the_missing_reference_is_named() -> None:
    made, original, promise = release()
    assert made.certificate.holds and made.details["suppressed"] == 3
    alone = sf.check(made.data, made.schema, [sf.KAnonymity(4), promise])
    assert alone.unjudged == (promise.key,) and alone.broken == ()
    text = alone.explain()
    assert "cannot be judged" in text and "original table, which is missing" in text and "does NOT hold" not in text
    stated = {each["guarantee"]: each for each in alone.to_mapping()["guarantees"]}
    assert stated[promise.key]["holds"] is None and stated[promise.key]["missing_reference"] == "original"
    assert stated["KAnonymity"]["holds"] is True and stated["KAnonymity"]["missing_reference"] is None
    both = sf.check(made.data, made.schema, [sf.KAnonymity(4), promise], original=original)
    assert both.holds and both.unjudged == () and "cannot be judged" not in both.explain()


def test_what_is_judged_and_broken_is_still_said() -> None:
    made, _, promise = release()
    broken = sf.check(made.data, made.schema, [sf.KAnonymity(50), promise])
    assert broken.broken == ("KAnonymity",) and "KAnonymity does NOT hold" in broken.explain()


def test_the_command_says_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made, original, promise = release()
    pyarrow.csv.write_csv(made.data, tmp_path / "rows.csv")
    pyarrow.csv.write_csv(original, tmp_path / "original.csv")
    (tmp_path / "schema.toml").write_text(made.schema.to_toml())
    asked = [
        "check",
        str(tmp_path / "rows.csv"),
        "--schema",
        str(tmp_path / "schema.toml"),
        "-g",
        'BetaLikeness(beta=0.9, attribute="ill")',
    ]
    run([*asked, "--json"])
    assert json.loads(capsys.readouterr().out)["unjudged"] == [promise.key]
    assert run([*asked, "--original", str(tmp_path / "original.csv")]) == 0
