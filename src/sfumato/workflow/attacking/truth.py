"""Who is who in a masked release, to count what an intruder finds: by position, a published column, or the owner's folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from sfumato.attacks.masked.register_records import NOT_JUDGED
from sfumato.attacks.tables.classes import released_table
from sfumato.core.errors import InputError, MissingColumn
from sfumato.core.view import View
from sfumato.data.masked import TableView
from sfumato.data.texts.values import texts
from sfumato.workflow.contents.rows import SOURCE_ROWS, truth_of
from sfumato.workflow.contents.who_is_who import PEOPLE, WhoIsWho

if TYPE_CHECKING:
    from sfumato.workflow.attacking.releases import Attackable

Int = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Truth:
    """For each entry of a register a released row that is theirs (-1: none; -2: nobody can tell), and where somebody may have
    several rows, whose each of them is."""

    rows: Int
    owners: Int | None = None


def who_is_who(release: Attackable) -> WhoIsWho | None:
    """What the owner of a masked release knows about the people behind its rows; None for everybody else."""
    if isinstance(release, View):
        return None
    if isinstance(release, (str, Path)):
        return WhoIsWho.load(Path(release) / "owner" / PEOPLE)
    return getattr(release.content, "who_is_who", None)


def truth_about(
    release: Attackable, view: TableView, people: pa.Table, *, aligned: bool, key: str | None, declared: str | None
) -> Truth | None:
    """The row of each entry of the register; None where nobody knows.

    `key` is the column that both have, or that the owner's folder knows. Without it the column counts that the register
    `declared` to name its people, or else a column that the owner's folder knows, the unit first."""
    if aligned and key is not None:
        raise InputError("--aligned and --key are two ways to say the same; give one")
    if aligned:
        return Truth(_by_position(release, view, people))
    roll = who_is_who(release)
    if key is None:
        if roll is None:
            return None
        shared = [name for name in (declared, *roll.columns) if name in roll.columns and name in people.column_names]
        return _by_folder(roll, view, people, str(shared[0])) if shared else None
    if roll is not None and key in roll.columns:
        return _by_folder(roll, view, people, key)
    return Truth(_by_key(view, people, key))


def _by_folder(roll: WhoIsWho, view: TableView, people: pa.Table, key: str) -> Truth:
    """Looked up in the owner's folder, which need not be the very source of the register."""
    if key not in people.column_names:
        raise MissingColumn(f"the register has no column '{key}' to tell people apart by")
    if len(roll) != released_table(view).table.num_rows:
        raise InputError(f"'owner/{PEOPLE}' is not about this release: it has another number of rows. Save the release again")
    return Truth(_judged(roll.rows_of(people.column(key), key), key), roll.whose(key))


def _judged(rows: Int, key: str) -> Int:
    """The same rows; whoever is not in the release by the key cannot be judged."""
    if not np.any(rows >= 0):
        raise InputError(f"nobody of the register is in the release by the column '{key}', so nothing could be counted")
    return np.where(rows >= 0, rows, NOT_JUDGED)


def _by_position(release: Attackable, view: TableView, people: pa.Table) -> Int:
    """The register is the very table that was masked, in its order."""
    if isinstance(release, View):
        raise InputError("--aligned reads the owner's folder, so pass the folder of the release")
    if "sample" in view.certificate.get("transparency", {}):
        raise InputError(
            "the release was made of a sample, whose records stand in another order than those of any register, so --aligned "
            "finds nobody in it. Look people up by a column that identifies them: --key COLUMN"
        )
    if not isinstance(release, (str, Path)):
        rows = getattr(release.content, "source_rows", None)
        if rows is None:
            raise InputError("nobody can say which record became which row of this release; name a column with key=")
    else:
        rows = _source_rows(Path(release) / "owner" / SOURCE_ROWS)
    if rows.size != released_table(view).table.num_rows or (
        rows.size and not 0 <= int(rows.min()) <= int(rows.max()) < people.num_rows
    ):
        raise InputError(
            "the register is not the table that was masked: its rows are not those that the owner's folder names. A register of "
            "some of the people is looked up by a column that identifies them: --key COLUMN"
        )
    return truth_of(rows, people.num_rows)


def _source_rows(path: Path) -> Int:
    try:
        rows = pq.read_table(path, columns=["source_row"]).column(0)
        if not pa.types.is_int64(rows.type) or rows.null_count:
            raise pa.ArrowInvalid("not the numbers of rows")
    except (OSError, pa.ArrowException, KeyError, ValueError):
        raise InputError(
            f"'{path}' does not say which record became which row; --aligned is for the owner of a masked release. Where an "
            "engine masked the rows nobody keeps that: to count what an intruder finds, protect a sample in this process "
            "(sample=, --sample) and attack that"
        ) from None
    numbers: Int = rows.to_numpy().astype(np.int64)
    return numbers


def _by_key(view: TableView, people: pa.Table, key: str) -> Int:
    """Looked up in a column that is published as it is."""
    released = released_table(view).table
    if key in view.certificate.get("transparency", {}).get("pseudonymised_columns", ()):
        raise InputError(
            f"the column '{key}' holds pseudonyms in the release, which no register knows. --key is for a column that the "
            "release shows as it is; leave it out"
        )
    if key not in released.column_names:
        raise MissingColumn(
            f"the release has no column '{key}' to tell people apart by, and its owner's folder (owner/{PEOPLE}) does not know "
            "it. Pass the owner's folder of a release whose schema has it as unit or identifier"
        )
    if key not in people.column_names:
        raise MissingColumn(f"the register has no column '{key}' to tell people apart by")
    where = {text: row for row, text in enumerate(texts(released.column(key))) if text is not None}
    if len(where) != released.num_rows:
        raise InputError(f"the column '{key}' does not tell the records of the release apart")
    places = [where.get(text, -1) if text is not None else -1 for text in texts(people.column(key))]
    return _judged(np.array(places, dtype=np.int64), key)
