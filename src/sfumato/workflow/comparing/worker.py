"""A worker of a comparison: each job is a method and a seed, each answer its scores."""

from __future__ import annotations

from collections.abc import Callable

from sfumato.core.plain_data import Plain
from sfumato.data.microdata import Microdata
from sfumato.workflow.comparing.grid import method_of
from sfumato.workflow.comparing.measuring import Job, Measures, evaluate
from sfumato.workflow.jobs import serve


def _prepared(people: Microdata, about: Plain) -> Callable[[Plain], Plain]:
    measures = Measures.of(about)
    return lambda job: evaluate(people, Job(0, method_of(job["method"]), job["seed"]), measures)


if __name__ == "__main__":
    serve(_prepared)
