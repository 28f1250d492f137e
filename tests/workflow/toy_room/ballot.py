"""A ballot as a release: one JSON file of items and votes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sfumato.measures.ballot_count import fewest_votes
from sfumato.sets.votes import EnoughVotes

from sfumato.core.certificate import Claim
from sfumato.core.declared import parameters
from sfumato.core.randomness import default
from sfumato.data.schema import Schema
from sfumato.workflow.contents.base import Content, Page, Promise, Saved, Submission
from sfumato.workflow.publishing.appearing import write_bytes
from sfumato.workflow.publishing.saving import describe_bytes, pretty
from sfumato.workflow.verifying.verification import Finding

BALLOT = "ballot.json"


@dataclass(frozen=True)
class Ballot(Content):
    """Items and votes."""

    votes: Mapping[str, int]
    dataset: str = "unnamed"

    @classmethod
    def submitted(cls, outcome, *, dataset, ledger, ledger_entry):
        if not any(isinstance(each, EnoughVotes) for each in outcome.claimed):
            return None
        promises = tuple(Promise(each) for each in outcome.claimed)
        source = default()
        content = cls(outcome.result, dataset or "unnamed")
        return Submission(content, promises, outcome.method, source.description, source.private)

    @property
    def data(self) -> Mapping[str, int]:
        return self.votes

    @property
    def schema(self) -> Schema:
        return Schema(dataset=self.dataset)

    def written(self):
        stored = pretty(dict(self.votes))
        return Ballot(json.loads(stored), self.dataset), {BALLOT: describe_bytes(stored)}

    def claims(self, guarantees: Sequence[Any]) -> tuple[Claim, ...]:
        fewest = fewest_votes(self.votes)
        return tuple(
            Claim(each.key, parameters(each), each.claim(), fewest, fewest >= each.k, "output", each.protects)
            for each in guarantees
        )

    def save(self, folder: Path, format: str, release: Any) -> Saved:
        write_bytes(folder / BALLOT, pretty(dict(self.votes)))
        stored = (folder / BALLOT).read_bytes()
        again = Ballot(json.loads(stored), self.dataset)
        return Saved({BALLOT: describe_bytes(stored)}, again.claims(release.guarantees), self.schema)

    @classmethod
    def files(cls, certificate, schema):
        return {BALLOT}, {BALLOT}

    @classmethod
    def read(cls, certificate, schema, folder, beside):
        return json.loads((folder / BALLOT).read_bytes()), [Finding("data", True, "a ballot")]

    @classmethod
    def check_claim(cls, claim, certificate, schema, data, references):
        guarantee, fewest = EnoughVotes(**claim.parameters), fewest_votes(data)
        kept = claim.promised == guarantee.claim() and claim.measured == fewest >= guarantee.k
        return [Finding(claim.guarantee, kept, f"{guarantee.claim()}; counted {fewest}")]

    @classmethod
    def page(cls, certificate, data):
        return Page({"items": len(data)})
