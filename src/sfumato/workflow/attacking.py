"""Attacking a saved release: the attacks that fit what the attacker has, each beside blind guessing."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from sfumato.attacks.meaning import TO
from sfumato.core.errors import InputError, MissingColumn, Unsupported, VerificationFailed
from sfumato.core.params import build
from sfumato.core.progress import Progress, silent
from sfumato.core.view import AttackResult, View
from sfumato.data.relation import ORDERED
from sfumato.data.released import ReleasedTable
from sfumato.data.schema import Column
from sfumato.data.values import texts
from sfumato.workflow import named
from sfumato.workflow.scoring import plain_result
from sfumato.workflow.verify import open_release

#: Attacks that look people of a register up in a masked release.
WITH_A_REGISTER = ("MicroaggregationIntersection", "NoiseLikelihood", "PramPosterior", "RankWindow", "RegisterLinkage")
#: Attacks on numbers, models and ratings: a table that was published is none of these.
ON_OUTPUTS = (
    "AggregateDifferencing",
    "AnswerIntersection",
    "Averaging",
    "MembershipInAggregates",
    "MembershipInModels",
    "ModelDifferencing",
    "OutlierInference",
    "Reconstruction",
    "Scoreboard",
)
#: What the published method of a mask invites.
_TRANSPARENT = {
    **dict.fromkeys(("RankSwapping", "BucketRankSwapping", "DistributionRankSwapping"), ("RankWindow",)),
    **dict.fromkeys(("Mdav", "VMdav", "Cbfs", "OptimalUnivariate"), ("MicroaggregationIntersection",)),
    **dict.fromkeys(("AdditiveNoise", "CorrelatedNoise", "MultiplicativeNoise"), ("NoiseLikelihood",)),
    "Pram": ("PramPosterior",),
}
_WHO_IS_WHO = (
    "who is who in a masked release can only be counted with the truth at hand. If the register is the very table "
    "that was masked, say --aligned (it needs the owner's folder beside public/); if both tables have a column that "
    "tells people apart, name it with --key."
)


def attack_folder(
    folder: str | Path,
    *,
    register: Any = None,
    earlier: Sequence[str | Path] = (),
    only: Sequence[str | Mapping[str, Any]] = (),
    aligned: bool = False,
    key: str | None = None,
    progress: Progress = silent,
) -> list[dict[str, Any]]:
    """Run the attacks on a release folder.

    Without more, those that need the release alone; with a `register` of people also linkage, with
    `earlier` releases also their intersection. `only` names the attacks to run, with their parameters where they have some
    (`"Minimality(value='HIV')"`, or a mapping). A masked table is attacked by distance and
    with all that its certificate tells about the mask; to count what was right, either the register is the very source of
    the release (`aligned`, which needs the owner's folder) or both have the column `key`. Results are counts and rates,
    never values.
    """
    people = None if register is None else _table(register, aligned)
    view = view_of(folder, people)
    truth = None if people is None else _truth(Path(folder), view, people, aligned, key)
    chosen = [named.inline(given) if isinstance(given, str) else dict(given) for given in only or _usual(view, people, truth)]
    if not only and earlier:
        chosen.append({"name": "Intersection"})
    results = []
    for position, given in enumerate(chosen):
        progress("attacking", position, len(chosen))
        try:
            result = _run(given, view, people, truth, earlier)
        except Unsupported:
            # that releases could not be compared must not read as if nothing had been found
            if only or given.get("name") == "Intersection":
                raise
            continue  # an attack that does not fit this release
        results.append({**plain_result(result), "details": dict(result.details)})
    return results


def _run(
    given: Mapping[str, Any],
    view: View,
    people: pa.Table | None,
    truth: NDArray[np.int64] | None,
    earlier: Sequence[str | Path],
) -> AttackResult:
    if given.get("name") in ON_OUTPUTS:
        raise InputError(
            f"{given['name']} attacks no table that was published: describe what was published (numbers, answers of a model, "
            "ratings) and what is known in a .json file, and pass that in place of the folder"
        )
    supposed = _supposed(given)
    attack = named.attack({key: value for key, value in given.items() if key not in supposed})
    name = type(attack).__name__
    if name in ("Linkage", "Minimality") or name in WITH_A_REGISTER:
        if people is None:
            raise InputError(f"{name} needs a register of people: pass it with --with")
        if name in WITH_A_REGISTER and truth is None:
            raise InputError(_WHO_IS_WHO)
        from sfumato.attacks import KnownAlgorithm, Register

        if supposed:
            return attack.run(view, build(KnownAlgorithm, {"register": people, **supposed}))
        return attack.run(view, Register(people, truth=truth))
    if name == "Intersection":
        if not earlier:
            raise InputError("Intersection needs at least one other release about the same people: pass it with --earlier")
        from sfumato.attacks import OtherReleases
        from sfumato.attacks.intersection import refuse_changed_values

        others = tuple(view_of(other, people) for other in earlier)
        for each in (view, *others):
            refuse_changed_values(each)
        _refuse_unread((view, *others))
        return attack.run(view, OtherReleases(others, people))
    return attack.run(view)


def _refuse_unread(views: Sequence[View]) -> None:
    """Texts that cannot be read for certain, or that were written otherwise, would make releases seem to have less in common."""
    shown = Counter(name for view in views for name in view.result.table.column_names)
    known = {name for view in views for name in view.schema.quasi}
    for name in sorted(name for name, releases in shown.items() if releases > 1):
        holding = [view for view in views if name in view.result.table.column_names]
        why = _written_otherwise(holding, name)
        if why is None and name in known:
            why = next((why for view in holding if (why := _unread(view, name)) is not None), None)
        if why is not None:
            raise Unsupported(f"{why}; assume that everything the releases tell adds up.")


def _written_otherwise(views: Sequence[View], name: str) -> str | None:
    """Why the values of a column may have been written differently; releases of earlier versions do not say how they were."""
    told = [_told_writing(view, name) for view in views]
    if len({each for each in told if each is not None}) > 1:
        return f"the values of column '{name}' had another type, or other codes for missing ones, in one of the releases"
    if None in told and len({_shown_writing(view, name) for view in views}) > 1:
        return (
            f"one of the releases does not say how the values of column '{name}' were written, and by type or missing values "
            "the columns differ"
        )
    return None


def _told_writing(view: View, name: str) -> tuple[object, ...] | None:
    """How the values of a column were written, as the certificate says; None where it does not."""
    told = view.certificate.get("transparency", {}).get("written_as")
    each = told.get(name) if isinstance(told, Mapping) else None
    if isinstance(each, Mapping) and isinstance(each.get("missing", []), list):
        return str(each.get("type")), tuple(sorted(map(str, each.get("missing", [])))), view.schema.columns[name].items
    return None


def _shown_writing(view: View, name: str) -> tuple[object, ...]:
    """How the values of a column were written, as far as its rows show it."""
    column = view.schema.columns[name]
    return column.type, column.items, view.result.table.column(name).null_count > 0


def _unread(view: View, name: str) -> str | None:
    """Why the texts of a column cannot be told apart by what is published and known."""
    column, told = view.schema.columns[name], view.certificate.get("transparency", {}).get("hierarchies")
    if column.items is not None:
        return f"column '{name}' holds sets, whose texts cannot be told apart for certain"
    if name in view.result.hierarchies:
        return None
    if column.hierarchy is not None and column.hierarchy.dates is not None:
        return f"the dates of column '{name}' can only be compared with known dates at hand: pass a register with --with"
    if isinstance(told, Mapping) and told.get(name) == "frequency":
        return f"the groups of column '{name}' were learnt from a table that is not published"
    if any(text is not None and TO in text for text in texts(view.result.table.column(name).unique())):
        return f"a range of column '{name}' cannot be read"
    return None


def _supposed(given: Mapping[str, Any]) -> dict[str, Any]:
    """What is said about the algorithm behind the release (`Minimality(l=2)`), in place of what its certificate says."""
    from sfumato.attacks import KnownAlgorithm

    if given.get("name") != "Minimality":
        return {}
    of_the_algorithm = {each.name for each in dataclasses.fields(KnownAlgorithm)} - {"register"}
    return {key: value for key, value in given.items() if key in of_the_algorithm}


def _usual(view: View, people: pa.Table | None, truth: NDArray[np.int64] | None) -> list[str]:
    """The attacks that fit what was published and what the attacker has."""
    from sfumato.attacks import ON_THE_RELEASE_ALONE

    method = view.certificate.get("method", {})
    if not named.is_mask(method):
        return [*_fitting(view, ON_THE_RELEASE_ALONE), *(["Linkage"] if people is not None else [])]
    classes = _fitting(view, ON_THE_RELEASE_ALONE) if view.certificate.get("claims") else []
    if people is None:
        return classes
    if truth is None:
        raise InputError(_WHO_IS_WHO)
    return [*classes, "RegisterLinkage", *_TRANSPARENT.get(str(method.get("name")), ())]


def _truth(folder: Path, view: View, people: pa.Table, aligned: bool, key: str | None) -> NDArray[np.int64] | None:
    """For each person of the register the row of the release that is theirs, -1 for none; None where nobody knows."""
    if aligned and key is not None:
        raise InputError("--aligned and --key are two ways to say the same; give one")
    if key is not None:
        return _by_key(view, people, key)
    if not aligned:
        return None
    from sfumato.workflow.contents.rows import SOURCE_ROWS

    path = folder / "owner" / SOURCE_ROWS
    rows = _source_rows(path)
    if rows.size != view.result.table.num_rows or (rows.size and not 0 <= int(rows.min()) <= int(rows.max()) < people.num_rows):
        raise InputError("the register is not the table that was masked: its rows are not those that the owner's folder names")
    return truth_of(rows, people.num_rows)


def truth_of(rows: NDArray[np.int64], people: int) -> NDArray[np.int64]:
    """For each record of the source the row of the release that stands for it, -1 for none."""
    if np.unique(rows).size != rows.size:
        raise InputError("several rows of the release stand for one record (resampled records), so no row alone is the right one")
    truth = np.full(people, -1, dtype=np.int64)
    truth[rows] = np.arange(rows.size)
    return truth


def _source_rows(path: Path) -> NDArray[np.int64]:
    try:
        rows = pq.read_table(path, columns=["source_row"]).column(0)
        if not pa.types.is_int64(rows.type) or rows.null_count:
            raise pa.ArrowInvalid("not the numbers of rows")
    except (OSError, pa.ArrowException, KeyError, ValueError):
        raise InputError(
            f"'{path}' does not say which record became which row; --aligned is for the owner of a masked release"
        ) from None
    found: NDArray[np.int64] = rows.to_numpy().astype(np.int64)
    return found


def _by_key(view: View, people: pa.Table, key: str) -> NDArray[np.int64]:
    released = view.result.table
    if key in view.certificate.get("transparency", {}).get("pseudonymised_columns", ()):
        raise InputError(f"the column '{key}' holds pseudonyms in the release, which no register knows; use --aligned")
    for table, what in ((released, "the release"), (people, "the register")):
        if key not in table.column_names:
            raise MissingColumn(f"{what} has no column '{key}' to tell people apart by")
    where = {text: row for row, text in enumerate(texts(released.column(key))) if text is not None}
    if len(where) != released.num_rows:
        raise InputError(f"the column '{key}' does not tell the records of the release apart")
    found = np.array([where.get(text, -1) if text is not None else -1 for text in texts(people.column(key))], dtype=np.int64)
    if not np.any(found >= 0):
        raise InputError(f"nobody of the register is in the release by the column '{key}', so nothing could be counted")
    return found


def _fitting(view: View, names: Sequence[str]) -> list[str]:
    """Attacks on sensitive attributes make no sense without one."""
    return list(names) if view.schema.sensitive else []


def view_of(folder: str | Path, people: pa.Table | None) -> View:
    """The release with what its texts stand for: its published hierarchies over the values the attacker
    knows.
    """
    from sfumato.data import hierarchy_builders

    try:
        with open_release(folder) as opened:
            trees = {}
            for name, column in opened.schema.columns.items():
                values = _known_values(name, column, opened.table, people)
                if values is not None:
                    trees[name] = hierarchy_builders.build(name, column, values, None, opened.schema.folder)
            released = ReleasedTable(opened.table, opened.schema, trees, opened.table.num_rows)
            return View(released, opened.schema, opened.certificate.to_mapping(), Path(folder).name)
    except VerificationFailed as error:
        raise InputError(f"'{folder}' is not a release that can be attacked: {error}") from None


def _known_values(name: str, column: Column, table: pa.Table, people: pa.Table | None) -> list[str | None] | None:
    """The values a hierarchy is built over: those of the register, or the leaves of a file alone; None where
    it takes more.
    """
    if column.hierarchy is None or column.hierarchy.frequency is not None:  # learnt from a population that is not here
        return None
    if column.role == "sensitive":
        return texts(table.column(name).unique())
    if people is not None and name in people.column_names:
        return texts(people.column(name).unique())
    return [] if column.hierarchy.file is not None else None


def _table(source: Any, aligned: bool) -> pa.Table:
    from sfumato.engines.sources import read

    opened = read(source)
    if aligned and opened.relation.engine not in ORDERED:
        raise InputError(
            f"--aligned counts on the order of the records, and records on {opened.relation.engine} have none of their own; "
            "name a column that tells people apart with --key"
        )
    return opened.table()
