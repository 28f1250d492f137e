"""A worker of a comparison: reads jobs, one line of JSON each, and answers each with a line of scores.

Started by `comparison_jobs` with the descriptor of the rows; the first line says what they are and what is measured. Ends when
its input ends, and with the process that started it.
"""

from __future__ import annotations

import json
import sys
import warnings

from sfumato.core.certificate import plain
from sfumato.core.errors import SfumatoError
from sfumato.core.stopping import end_with_parent
from sfumato.workflow.comparing.grid import method_of
from sfumato.workflow.comparing.jobs import Job, evaluate, open_shared


def main() -> None:
    """Serve until there is no more to read."""
    warnings.simplefilter("ignore")
    end_with_parent()
    people, measures = open_shared(int(sys.argv[1]), sys.stdin.readline())
    answers = sys.stdout
    sys.stdout = sys.stderr  # nothing but answers may stand between the lines
    for line in sys.stdin:
        job = json.loads(line)
        mask = method_of(job["method"])
        try:
            result = evaluate(people, Job(0, mask, job["seed"]), measures)
        except SfumatoError as error:
            result = {"refused": str(error)}
        except Exception as error:  # its message might hold a value
            result = {"refused": f"an internal error happened ({type(error).__name__})"}
        answers.write(json.dumps(plain(result), allow_nan=False) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
