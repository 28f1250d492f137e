"""The names of this package and where they live: the one list, read by people, type checkers and the package itself."""

from sfumato.lessons.models import MODELS as MODELS
from sfumato.lessons.models import PrivacyModel as PrivacyModel
from sfumato.lessons.terminology import Property as Property
from sfumato.lessons.terminology import ReferenceSetting as ReferenceSetting
from sfumato.lessons.terminology import contradictions as contradictions
from sfumato.lessons.disclosure_logic import disclosures as disclosures
from sfumato.lessons.terminology import entailed as entailed
from sfumato.lessons.terminology import entails as entails
from sfumato.lessons.noise_laws import noise_laws as noise_laws
from sfumato.lessons.regression_leak import regression_leak as regression_leak

NAMES: dict[str, str]
