"""The demonstration: generate a table of people, protect it with k-anonymity and l-diversity, and say what
came out.

Everything it makes is in one folder: the generated table with its schema, the recipe, the release and the
ledger.
"""

from __future__ import annotations

from pathlib import Path

from sfumato.core.errors import InputError
from sfumato.core.plain_data import PlainDict
from sfumato.core.progress import Progress, silent

RECIPE = """\
# Made by `sfumato demo`; edit it and run: sfumato protect recipe.toml
data = "people.csv"
schema = "people.toml"
output = "release"
overwrite = true

[[guarantee]]
name = "KAnonymity"
k = 5

[[guarantee]]
name = "DistinctLDiversity"
l = 3
attribute = "diagnosis"

[checks]
attacks = ["Homogeneity", "Skewness"]
utility = ["loss", "range_shown"]   # without this line also "detail_kept": what each column has kept
"""


def demo(folder: str | Path, *, rows: int = 50_000, progress: Progress = silent) -> tuple[PlainDict, list[str]]:
    """Run it; returns the summary as data and in words."""
    from sfumato.data.sample import write_sample
    from sfumato.report.summary import summary, summary_lines
    from sfumato.workflow.recipe import Recipe
    from sfumato.workflow.verdicts import release_verdict

    place = Path(folder)
    _refuse_foreign(place)
    try:
        place.mkdir(parents=True, exist_ok=True)
        progress("generating people", 0, rows)
        write_sample(place, rows=rows)
        (place / "recipe.toml").write_text(RECIPE, encoding="utf-8")
    except OSError as error:
        raise InputError(f"the demonstration cannot be written to '{place}': {error.strerror or type(error).__name__}") from None
    recipe = Recipe.load(place / "recipe.toml")
    release = recipe.run(progress)
    target = place / "release"
    verdict = release_verdict(release)
    lines = [
        *verdict.lines,
        f"generated {rows:,} people: {place / 'people.csv'}; recipe: {place / 'recipe.toml'}",
        *summary_lines(release, target, verdict.warnings),
    ]
    return {**verdict.to_mapping(), **summary(release, target)}, lines


def _refuse_foreign(place: Path) -> None:
    """Only an empty place or an earlier demonstration, as it was made, is written to."""
    if place.exists() and not place.is_dir():
        raise InputError(f"'{place}' exists and is not a folder. Name another place: sfumato demo FOLDER")
    if place.is_dir() and any(place.iterdir()) and not _is_demonstration(place / "recipe.toml"):
        raise InputError(
            f"'{place}' is not empty and holds no earlier demonstration as it was made. Name another place: sfumato demo FOLDER"
        )


def _is_demonstration(recipe: Path) -> bool:
    if not recipe.is_file():
        return False
    with recipe.open(encoding="utf-8", errors="replace") as file:
        return file.read(len(RECIPE) + 1) == RECIPE
