"""Files behind a Spark frame, for a run that needs one state of them: nothing is copied, and a file that changes is noticed.

A frame that shows columns of files as they are reads the same rows as long as the files are the same. Their lengths and times of
change are compared before and after each answer. Whatever else a frame may do (join, filter, compute) is materialised instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from sfumato.core.errors import SourceError
from sfumato.engines.spark.sessions import SparkFrame, is_connect

#: Each is asked for once per answer; of more files than these the rows are materialised.
MOST_FILES = 1_000


@dataclass(frozen=True)
class FileStates:
    """The files of a frame with length and time of change, as the frame listed them."""

    listed: tuple[tuple[Any, int, int], ...] = field(repr=False)  # Hadoop's paths, which have no types here
    configuration: Any = field(repr=False)

    def check(self) -> None:
        """Raise where a file is another one by now."""
        for path, length, changed in self.listed:
            now = path.getFileSystem(self.configuration).getFileStatus(path)
            if (now.getLen(), now.getModificationTime()) != (length, changed):
                raise SourceError(
                    "a file of the table changed while it was being read. Nothing was released; read the table again when nobody "
                    "writes to it, or pass frame.localCheckpoint()."
                )


def file_states(frame: SparkFrame) -> FileStates | None:
    """The files of a frame that shows their columns and does nothing else; None for every other frame."""
    if is_connect(frame):
        return None
    index = _file_index(frame._jdf.queryExecution().analyzed())
    if index is None:
        return None
    files = index.allFiles()
    if files.size() > MOST_FILES:
        return None
    listed = tuple((each.getPath(), each.getLen(), each.getModificationTime()) for each in _each(files))
    return FileStates(listed, frame.sparkSession._jsparkSession.sessionState().newHadoopConf())


def _file_index(plan: Any) -> Any:
    kind = plan.getClass().getSimpleName()
    if kind == "SubqueryAlias":
        return _file_index(plan.child())
    if kind == "Project" and all(_is_column(each) for each in _each(plan.projectList())):
        return _file_index(plan.child())
    if kind != "LogicalRelation" or plan.relation().getClass().getSimpleName() != "HadoopFsRelation":
        return None
    index = plan.relation().location()
    return index if index.getClass().getSimpleName() == "InMemoryFileIndex" else None


def _is_column(expression: Any) -> bool:
    kind = expression.getClass().getSimpleName()
    return kind == "AttributeReference" or (kind == "Alias" and _is_column(expression.child()))


def _each(sequence: Any) -> Iterator[Any]:
    return (sequence.apply(place) for place in range(sequence.size()))
