"""A worker of a comparison: each job is a method and the seeds of its draws, each answer their scores."""

from __future__ import annotations

from collections.abc import Callable

from sfumato.core.plain_data import Plain
from sfumato.data.microdata import Microdata
from sfumato.workflow.comparing.grid import method_of
from sfumato.workflow.comparing.measuring import Measures, evaluate_each
from sfumato.workflow.jobs import serve


def _prepared(people: Microdata, about: Plain) -> Callable[[Plain], Plain]:
    measures = Measures.of(about)
    return lambda job: {"draws": evaluate_each(people, method_of(job["method"]), job["seeds"], measures)}


if __name__ == "__main__":
    serve(_prepared)
