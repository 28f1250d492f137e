"""The names of this package and where they live: the one list, read by people, type checkers and the package itself."""

from sfumato.wire.mix import Cascade as Cascade
from sfumato.wire.fingerprint import Fingerprint as Fingerprint
from sfumato.wire.frames import FrameReader as FrameReader
from sfumato.wire.mix import Mix as Mix
from sfumato.wire.keys import OwnerKey as OwnerKey
from sfumato.wire.sealing import SealingKey as SealingKey
from sfumato.wire.signatures import SigningKey as SigningKey
from sfumato.wire.signatures import VerifyingKey as VerifyingKey
from sfumato.wire.fingerprint import fingerprint as fingerprint
from sfumato.wire.keys import load_or_create_owner_key as load_or_create_owner_key
from sfumato.wire.sealing import open_sealed as open_sealed
from sfumato.wire.sealing import seal as seal
from sfumato.wire.fingerprint import sha256_file as sha256_file

NAMES: dict[str, str]
