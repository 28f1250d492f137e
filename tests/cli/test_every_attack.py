"""Every public attack runs from the command line, and in one of a few ways."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow.csv import write_csv

from sfumato.attacks.adversary import OutputAttack
from sfumato.cli.main import run
from sfumato.core.registry import every, names
from sfumato.core.texts import percent
from tests.workflow.test_attacking_outputs import GAMES, PARAMETERS

ROOT = Path(__file__).resolve().parents[2]
PEOPLE = pa.table(
    {
        "who": [f"p{i // 2}" for i in range(40)],
        "age": [20 + i % 7 for i in range(40)],
        "income": [1000 + 37 * i for i in range(40)],
        "job": ["abc"[i % 3] for i in range(40)],
        "disease": [("flu", "HIV", "cold", "gout")[i % 4] for i in range(40)],
        "basket": ["beer|tea" if i % 2 else "milk|tea" for i in range(40)],
    }
)
COLUMNS = {
    "age": 'role = "quasi"\ntype = "integer"\nbounds = [20, 26]\nhierarchy = { intervals = [2, 4, 8] }',
    "income": 'role = "quasi"\ntype = "number"',
    "job": 'role = "quasi"\ntype = "string"',
    "disease": 'role = "sensitive"\ntype = "string"',
    "who": 'role = "unit"\ntype = "string"\npseudonym = true',
    "basket": 'role = "quasi"\ntype = "string"\nitems = "|"',
}
#: The columns of a release, what it promises and how it was made.
RELEASES: dict[str, tuple[tuple[str, ...], str, str]] = {
    "generalised": (("age", "disease"), 'AlphaKAnonymity, alpha=0.5, k=2, attribute="disease"', "Mondrian"),
    "coarser": (("age", "disease"), "KAnonymity, k=20", "Mondrian"),
    "followed": (("who", "job"), "KAnonymity, k=1", "Mondrian"),
    "baskets": (("age", "basket"), "KAnonymity, k=2", "Hybrid"),
    "swapped": (("age", "income"), "", "RankSwapping(p=20)"),
    "averaged": (("age", "income"), "", "Mdav(k=3)"),
    "noisy": (("age", "income"), "", "AdditiveNoise(ratio=0.1)"),
    "changed": (("job", "age"), "", 'Pram(columns=["job"], stay=0.7)'),
}  # fmt: skip
GAME = "{}.json"
COMMANDS: dict[str, list[str]] = {
    **{
        name: ["generalised", "-a", name] for name in ("Homogeneity", "BackgroundKnowledge", "ProbabilisticInference", "Skewness")
    },
    "BlankInference": ["tabled"],
    "Similarity": ["Similarity.json"],
    "PartialKnowledge": ["baskets", "-a", "PartialKnowledge(items=1)"],
    "PseudonymTracking": ["followed", "-a", 'PseudonymTracking(observed=["job"])'],
    "Linkage": ["generalised", "--with", "people.csv", "-a", "Linkage"],
    "Minimality": ["generalised", "--with", "people.csv", "-a", "Minimality(max_worlds=100)"],
    "Intersection": ["generalised", "--earlier", "coarser", "-a", "Intersection"],
    "RegisterLinkage": ["noisy", "--with", "people.csv", "--aligned", "-a", "RegisterLinkage"],
    "RankWindow": ["swapped", "--with", "people.csv", "--aligned", "-a", "RankWindow"],
    "MicroaggregationIntersection": ["averaged", "--with", "people.csv", "--aligned", "-a", "MicroaggregationIntersection"],
    "NoiseLikelihood": ["noisy", "--with", "people.csv", "--aligned", "-a", "NoiseLikelihood"],
    "PramPosterior": ["changed", "--with", "people.csv", "--aligned", "-a", "PramPosterior"],
    "GuessHidden": ["hidden", "--itemsets", "hidden/owner/itemsets.json"],
    **{name: [GAME.format(name)] for name, kind in every("attack").items() if issubclass(kind, OutputAttack)},
}
#: Run without --json too: one attack of each way of being run.
PRINTED = {"Homogeneity", "PseudonymTracking", "Linkage", "Intersection", "RankWindow", "MembershipInModels", "Similarity"}
BESIDE: dict[str, dict[str, Any]] = {
    "AnswerIntersection": {"published": [{"column": "age", "value": 21}], "knowledge": {"people": "people.csv"}},
    "MembershipInModels": {"published": {"answers": "answers.csv"}, "knowledge": {"training_loss": 0.3}},
    "Similarity": {"published": {"release": "generalised"}, "knowledge": {"groups": {"flu": "ill", "HIV": "ill"}}},
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("attacked")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("SFUMATO_KEY", str(folder / "owner.key"))
        write_csv(PEOPLE, "people.csv")
        Path("answers.csv").write_text("label,member,no,yes\nyes,1,0.1,0.9\nno,1,0.8,0.2\nyes,0,0.6,0.4\nno,0,0.6,0.4\n")
        for name, (columns, guarantee, method) in RELEASES.items():
            parts = (f"[columns.{column}]\n{COLUMNS[column]}\n" for column in columns)
            write_csv(PEOPLE.select(columns), "source.csv")
            Path("schema.toml").write_text(f'dataset = "{name}"\n' + "".join(parts))
            promised = ["--guarantee", guarantee] if guarantee else []
            told = ["source.csv", "--schema", "schema.toml", *promised, "--method", method, "--output", name, "--no-ledger"]
            assert run(["protect", *told]) == 0, name
        Path("baskets.dat").write_text("a b c\na b\na c\nb c\n" * 4)
        Path("list.txt").write_text("a, b, c\n")
        assert run(["rules", "hide", "baskets.dat", "--list", "list.txt", "--support", "3", "--output", "hidden"]) == 0
        assert run(["table", "protect", "people.csv", "--by", "age,job", "--output", "tabled"]) == 0
        described = {**{name: content for name, (content, _) in GAMES.items()}, **BESIDE}
        for name, content in described.items():
            Path(f"{name}.json").write_text(json.dumps({"attack": {"name": name, **PARAMETERS.get(name, {})}, **content}))
    yield folder


def test_every_public_attack_has_a_command() -> None:
    assert set(COMMANDS) == set(names("attack"))


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_an_attack_runs_as_a_command(
    place: Path, name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(place)
    monkeypatch.setenv("SFUMATO_KEY", str(place / "owner.key"))
    assert run(["attack", *COMMANDS[name], "--json"]) == 0
    (told,) = json.loads(capsys.readouterr().out)["attacks"]
    assert told["attack"] == name and 0 <= told["baseline"] <= 1 and 0 <= told["success"] <= 1 and told["targets"] > 0
    if name in PRINTED:
        assert run(["attack", *COMMANDS[name]]) == 0
        about = "roughly " if told["details"].get("people_are") == "estimated" else ""
        assert f"{name}: success {about}{percent(told['success'])}" in capsys.readouterr().out


def rows_of_the_manual() -> list[set[str]]:
    """The attacks of each row of the table in the manual."""
    page = (ROOT / "docs" / "attacks.md").read_text("utf-8").partition("## From the command line")[2].partition("\n## ")[0]
    rows = [line.split("|")[2] for line in page.partition("|---|---|---|")[2].partition("\n\n")[0].strip().splitlines()]
    return [set(re.findall(r"`([A-Za-z]+)`", row)) for row in rows]


def test_the_manual_says_of_every_attack_how_it_is_run() -> None:
    """As the attacks say it themselves: by what they need, and whether they are run unasked."""
    kinds = every("attack")
    on_tables = {name: kind for name, kind in kinds.items() if not issubclass(kind, OutputAttack)}

    def saying(*needs: str, **more: bool) -> set[str]:
        return {
            name for name, kind in on_tables.items() if kind.needs == needs and more.items() <= {"unasked": kind.unasked}.items()
        }

    assert rows_of_the_manual() == [
        saying(unasked=True),
        saying(unasked=False),
        {name for name in saying() if kinds[name].helped_by},
        saying("register"),
        saying("register", "truth"),
        saying("earlier"),
        saying("itemsets"),
        set(kinds) - set(on_tables),
    ]
    assert set.union(*rows_of_the_manual()) == set(names("attack"))


def test_attacks_by_distance_ask_who_is_who(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(place)
    assert run(["attack", "noisy", "--with", "people.csv", "-a", "RegisterLinkage"]) == 2
    assert "--aligned" in capsys.readouterr().err
    assert run(["attack", "generalised", "-a", "Intersection"]) == 2
    assert "--earlier" in capsys.readouterr().err
