"""The words every room shares: guarantees, outcomes, certificates, views, errors, progress, randomness."""

from __future__ import annotations

from sfumato.core.lazy import Kind

KINDS = {
    "guarantee": Kind("sfumato.core.guarantees.base:ClassGuarantee", ("sfumato.core.guarantees",)),
    "result": Kind("sfumato.core.guarantees.hidden:ResultGuarantee", ("sfumato.core.guarantees",)),
    "loss": Kind("sfumato.core.guarantees.loss:LossGuarantee", ("sfumato.core.guarantees",)),
}
