"""Every message of the page on troubleshooting is what the program says, provoked here as its reader would meet it."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import sfumato as sf
from sfumato.cli.main import run

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "troubleshooting.md").read_text("utf-8")
MESSAGES = re.findall(r"^### `(.+)`$", PAGE, re.MULTILINE)
PROTECT = ["protect", "people.csv", "--no-ledger", "-o", "new", "--schema"]
COUNT = "SELECT COUNT(*) AS n FROM people"

Provocation = Callable[[pytest.MonkeyPatch], object]
PROVOKED: dict[str, Provocation] = {}


def says(start: str) -> Callable[[Provocation], Provocation]:
    """The message of the page that begins so, or holds these words, is provoked by the function."""

    def kept(provoke: Provocation) -> Provocation:
        (message,) = [each for each in MESSAGES if start in each]
        assert message not in PROVOKED, message
        PROVOKED[message] = provoke
        return provoke

    return kept


def commands(start: str, *lines: list[str]) -> None:
    """The message appears when the commands are typed, the last of which fails."""

    @says(start)
    def _(_: pytest.MonkeyPatch) -> None:
        for line in lines:
            run(line)


def edited(name: str, *changes: tuple[str, str]) -> str:
    """The schema of the sample with changes, under another name."""
    text = Path("people.toml").read_text("utf-8")
    for before, after in changes:
        assert before in text, before
        text = text.replace(before, after, 1)
    Path(name).write_text(text, "utf-8")
    return name


def with_schema(start: str, *changes: tuple[str, str]) -> None:
    """The message appears when the sample is protected under a changed schema."""

    @says(start)
    def _(_: pytest.MonkeyPatch) -> None:
        run([*PROTECT, edited("changed.toml", *changes), "--k", "2"])


def asked(start: str, question: str, *options: str, change: tuple[tuple[str, str], ...] = ()) -> None:
    """The message appears when a question is asked under a grant of ε = 1."""

    @says(start)
    def _(_: pytest.MonkeyPatch) -> None:
        run(["ledger", "grant", "sample-people", "ann", "--epsilon", "1", "--unit", "record"])
        run(["query", question, "--data", "people.csv", "--schema", edited("asked.toml", *change), "--analyst", "ann", *options])


def file(name: str, content: str) -> str:
    """A file in the folder of the test."""
    Path(name).write_text(content, "utf-8")
    return name


# reading a table
commands("there is no file", ["inspect", "nowhere.csv"])
commands("there is no schema file", [*PROTECT, "nowhere.toml", "--k", "5"])


@says("cells like the line of column names")
def _(_: pytest.MonkeyPatch) -> None:
    run(["inspect", file("uneven.csv", "a,b\n1,2\n3,4,5\n")])


@says("a quoted cell that starts")
def _(_: pytest.MonkeyPatch) -> None:
    run(["inspect", file("open.csv", 'a;b\n1;2\n"3;4\n')])


with_schema(
    "do not fit their type",
    ('[columns.name]\ntype = "string"\nrole = "identifier"', '[columns.name]\ntype = "integer"\nrole = "plain"'),
)


@says("reading … files needs")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setitem(sys.modules, "openpyxl", None)
    run(["inspect", file("people.xlsx", "PK")])


# describing it
with_schema("unknown key", ('role = "quasi"', 'rol = "quasi"'))
with_schema(
    "of the data is not described", ('[columns.income]\ntype = "integer"\nbounds = [0, 250000]\nrole = "sensitive"\n', "")
)
with_schema("is in the schema but not in", ("[columns.income]", '[columns.height]\ntype = "integer"\n\n[columns.income]'))
with_schema("lists the values that occur", ('"people_occupation.csv"', '"people_occupation.csv", leaves = "data"'))


@says("no column has the role")
def _(_: pytest.MonkeyPatch) -> None:
    text = Path("people.toml").read_text("utf-8").replace('role = "quasi"', 'role = "plain"')
    run([*PROTECT, file("changed.toml", text), "--k", "2"])


@says("missing from its hierarchy")
def _(_: pytest.MonkeyPatch) -> None:
    lines = Path("people_occupation.csv").read_text("utf-8").splitlines()
    file("people_occupation.csv", "\n".join(lines[:-3]) + "\n")
    run([*PROTECT, "people.toml", "--k", "2"])


@says("have an empty cell above")
def _(_: pytest.MonkeyPatch) -> None:
    run(["hierarchy", "new", "occupation", "--data", "people.csv", "-o", "begun.csv"])
    run([*PROTECT, edited("changed.toml", ("people_occupation.csv", "begun.csv")), "--k", "2"])


@says("columns have no role")
def _(_: pytest.MonkeyPatch) -> None:
    sf.protect("people.csv", k=5, quasi=["age"])


# protecting it
commands("protecting a table needs", [*PROTECT, "people.toml"])
commands("k must be", [*PROTECT, "people.toml", "--k", "0"])
commands("unknown method", [*PROTECT, "people.toml", "--k", "5", "--method", "Latice"])
commands("names a column that the schema does not describe", [*PROTECT, "people.toml", "--k", "2", "--l", "diagnos=2"])
commands("so no class can be that large", [*PROTECT, "people.toml", "--k", "5000"])
commands("no recoding reaches this", [*PROTECT, "people.toml", "--k", "2", "--l", "diagnosis=99"])


@says("exists already")
def _(_: pytest.MonkeyPatch) -> None:
    shutil.copytree("out", "new")
    run([*PROTECT, "people.toml", "--k", "5"])


@says("can be used by others")
def _(_: pytest.MonkeyPatch) -> None:
    run(["key", "new", "sign.key"])
    Path("sign.key").chmod(0o644)
    run([*PROTECT, "people.toml", "--k", "5", "--sign", "sign.key"])


# verifying a release
commands("there is no release folder", ["verify", "nowhere"])
commands("is no release folder: ", ["verify", "."])
commands("a signature was expected", ["verify", "out", "--public-key", "ed25519:" + "A" * 43 + "="])
commands("a demonstration, not", [*PROTECT, "people.toml", "--k", "5", "--seed", "1"], ["verify", "new"])
commands(
    "the certificate promises no guarantee",
    [*PROTECT, "people.toml", "-m", "Rounding(base=5, columns=['age'])"],
    ["verify", "new"],
)


@says("is not the one that was certified")
def _(_: pytest.MonkeyPatch) -> None:
    with Path("out/public/schema.toml").open("a", encoding="utf-8") as schema:
        schema.write("# more\n")
    run(["verify", "out"])


# asking under differential privacy
commands("no budget was granted", ["query", COUNT, "--data", "people.csv", "--schema", "people.toml", "--epsilon", "1"])
asked("the budget does not suffice", COUNT, "--epsilon", "2")
asked("say what the answer may cost", COUNT)
asked("and does not say whether one person", COUNT, "--epsilon", "0.1", change=(('unit = "record"\n', ""),))
PERSON = (('unit = "record"\n', ""), ('role = "identifier"', 'role = "unit"'))
asked("count is not declared", COUNT, "--epsilon", "0.1", change=PERSON)
asked("protects one …, and this would", COUNT, "--epsilon", "0.1", "--max-rows", "1", change=PERSON)
asked(
    "AVG needs a bounded number",
    "SELECT AVG(income) AS i FROM people",
    "--epsilon",
    "0.1",
    change=(("bounds = [0, 250000]\n", ""),),
)
LEARNT = (("bounds = [0, 250000]\n", 'bounds = [0, 250000]\nsource = "data"\n'),)
asked("was found by looking at the values", "SELECT AVG(income) AS i FROM people", "--epsilon", "0.1", change=LEARNT)
asked("must be in GROUP BY", "SELECT age FROM people", "--epsilon", "0.1")
commands("there is no ledger at", ["ledger", "--ledger", "nowhere.db"])


@says("a session needs a ledger")
def _(_: pytest.MonkeyPatch) -> None:
    sf.Session(sf.read("people.csv", schema="people.toml"))


@says("the domain of column")
def _(_: pytest.MonkeyPatch) -> None:
    run(
        [
            "publish",
            "PrivateHistogram",
            "people.csv",
            "--schema",
            "people.toml",
            "--set",
            "columns=postcode",
            "--set",
            "epsilon=0.1",
            "-o",
            "new",
        ]
    )


@says("it is not an SQLite file")
def _(_: pytest.MonkeyPatch) -> None:
    run(["ledger", "--ledger", file("other.db", "something else" * 500)])


# the program itself
commands("there is no command", ["protekt"])
commands("there is no option", ["protect", "people.csv", "--shema", "people.toml"])
commands("there is no module named", ["refute", "nowhere:f", "--neighbours", "[1, 2]"])


@says("is not valid TOML")
def _(_: pytest.MonkeyPatch) -> None:
    run(["protect", file("recipe.toml", "data = people.csv\n")])


@says("an internal error happened")
def _(patch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> None:
        raise RuntimeError("Ada has the flu")

    patch.setattr("sfumato.workflow.verifying.verify.verify", fails)
    run(["verify", "out"])


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of people with its schema, and a release of it in `out`."""
    folder = tmp_path_factory.mktemp("sample")
    sf.data.write_sample(folder, rows=200)
    people = sf.read(folder / "people.csv", schema=folder / "people.toml")
    sf.protect(people, [sf.KAnonymity(5)], sf.Mondrian()).save(folder / "out")
    return folder


def test_every_message_of_the_page_is_provoked() -> None:
    assert len(set(MESSAGES)) == len(MESSAGES) >= 40
    assert set(PROVOKED) == set(MESSAGES)


@pytest.mark.parametrize("message", MESSAGES)
def test_the_program_says_what_the_page_says(
    message: str, sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(sample, tmp_path / "work")
    monkeypatch.chdir(tmp_path / "work")
    try:
        PROVOKED[message](monkeypatch)
        answered = "".join(capsys.readouterr())
    except sf.errors.SfumatoError as error:
        answered = f"error: {error}"
    words = " ".join(answered.split())
    pattern = ".+?".join(re.escape(part.strip()) for part in message.split("…"))
    assert re.search(pattern, words), words[-1500:]
    assert message.startswith(("FAILED", "a demonstration", "the certificate")) or "error: " in words
