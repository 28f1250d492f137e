"""What a column's name says about it: words, in several languages, for identifiers, quasi-identifiers,
sensitive attributes, weights.

A name is cut into words (`birthDate`, `date-of-birth`, `geburts_datum`); a list entry matches whole words
only, so that `idea` is no `id`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from sfumato.data.schema import Role

#: Words by role; an entry of two words matches them in a row. English, German, French, Spanish, Italian,
#: Portuguese, Dutch, Nordic languages, Turkish.
_WORDS: dict[Role, str] = {
    "identifier": """
        name|names|firstname|lastname|surname|forename|fullname|username|user name|login|nickname
        vorname|nachname|familienname|nom|prenom|nombre|apellido|apellidos|nome|cognome|sobrenome
        naam|voornaam|achternaam|navn|fornavn|etternavn|efternamn|ad|soyad|soyadi|email|e mail
        mail|correo|courriel|phone|telephone|tel|mobile|cell|fax|telefon|telefono|telefone
        handy|movil|portable|address|adresse|direccion|indirizzo|endereco|adres|street|strasse
        rue|calle|via|rua|straat|gate|house number|hausnummer|ssn|social security|sin|nin|nino
        national id|national insurance|passport|passnummer|passeport|pasaporte|dni|nie|nif|cpf
        nir|bsn|personnummer|fodselsnummer|henkilotunnus|codice fiscale|steuernummer|tax id|tckn
        tc kimlik|aadhaar|pan|license|licence|driver license|plate|vin|iban|account
        account number|kontonummer|konto|card number|credit card|mrn|medical record|patient id
        patientid|person id|personid|customer id|client id|member id|student id|employee id|user id
        userid|uid|uuid|guid|id|identifier|ip|ip address|mac|device id|imei|url|signature
        pid|hhid|persid|custid|clientid|memberid|studentid|empid|caseid|subjid|usubjid|subjectid|respid|householdid
        empno|caseno|patno|identifiant|identificador|identificativo|hid|idpatient|telefonnummer|handynummer|faxnummer|telefonnr
        photo|fingerprint|biometric|twitter|facebook|instagram
    """,
    "weight": """
        wgt|pweight|fnlwgt|sampling weight|survey weight|sample weight|design weight
        peso muestral|factor expansion
    """,
    "sensitive": """
        diagnosis|diagnose|diagnostic|diagnostico|diagnosi|disease|illness|condition|icd|icd10
        krankheit|maladie|enfermedad|malattia|doenca|ziekte|sykdom|hastalik|symptom|treatment
        therapy|medication|drug|hiv|aids|cancer|blood|bmi|pregnancy|disability|behinderung
        handicap|salary|income|wage|wages|earnings|gehalt|einkommen|lohn|salaire|revenu|ingresos
        sueldo|renta|salario|reddito|stipendio|inkomen|inntekt|maas|debt|credit|loan|balance
        wealth|assets|vermogen|schulden|score|credit score|grade|mark|religion|confession
        konfession|faith|ethnicity|party|vote|political|union|sexuality|orientation|conviction
        crime|offence|offense|arrest|salary class
    """,
    "quasi": """
        age|alter|edad|eta|idade|leeftijd|alder|yas|birth|birthday|birthdate|dob|date of birth
        birth year|yob|geburt|geburtsdatum|geburtsjahr|naissance|nacimiento|nascita|nascimento
        geboorte|fodt|dogum|sex|gender|geschlecht|sexe|sexo|sesso|geslacht|kjonn|cinsiyet|zip
        zipcode|postcode|postal|postal code|plz|postleitzahl|code postal|codigo postal|cap|cep
        postnummer|city|town|village|municipality|gemeinde|stadt|ort|ville|ciudad|citta|cidade
        stad|kommune|sehir|county|district|region|province|state|bundesland|land|departement
        provincia|country|pays|pais|paese|nationality|nationalitat|citizenship|native country
        birthplace|place of birth|race|education|bildung|ausbildung|formation|educacion|istruzione
        escolaridade|opleiding|marital|marital status|familienstand|etat civil|estado civil
        stato civile|burgerlijke|occupation|job|profession|beruf|metier|ocupacion|professione
        profissao|beroep|yrke|meslek|employer|workclass|industry|language|sprache|langue|idioma
        household|children|kinder|height|weight|gewicht|poids|latitude|longitude|lat|lon|lng|location
        coordinates|admission|discharge|visit date|date|datum|datetime|timestamp|year|month
        hospital|school
    """,
    "unit": """
        patient|patients|person|user|customer|client|member|student|employee|participant|respondent
        insured|versicherter|versicherte|versicherten|proband|teilnehmer|kunde|kundin|mitglied|benutzer|utilisateur|cliente|paciente|paziente
    """,
}  # fmt: skip

_PHRASES: dict[Role, frozenset[str]] = {
    role: frozenset(entry.strip() for entry in listed.replace("\n", "|").split("|") if entry.strip())
    for role, listed in _WORDS.items()
}
#: Identifiers that different people may have in common: that a value repeats does not mean that a person does.
SHARED = frozenset(
    """
    name names firstname lastname surname forename fullname vorname nachname familienname nom prenom nombre apellido apellidos
    nome cognome sobrenome naam voornaam achternaam navn fornavn etternavn efternamn ad soyad soyadi phone telephone tel mobile
    cell fax telefon telefono telefone handy movil portable address adresse direccion indirizzo endereco adres street strasse rue
    calle via rua straat gate hausnummer ip mac url signature photo fingerprint biometric plate vin
    """.split()
) | {"house number", "ip address", "telefonnummer", "handynummer", "faxnummer", "telefonnr"}  # fmt: skip
#: Identifiers that number people and nothing else, so that even a few that repeat often are people with many rows.
PERSON_NUMBERS = frozenset(
    f"{who}{gap}id" for who in "patient person customer client member student employee user".split() for gap in (" ", "")
) | {"mrn", "medical record", "ssn", "social security", "national id", "pid"}
_POSTCODES = frozenset({"zip", "zipcode", "postcode", "postal", "plz", "postleitzahl", "cep", "postnummer"}) | {
    "postal code", "code postal", "codigo postal",
}  # fmt: skip
#: A last word that numbers things (`case_no`, `pat_nr`), and endings of one word that do (`kundennummer`, `patnr`).
_NUMBERING = frozenset({"nr", "no", "num", "nbr", "number", "nummer", "numero", "numer", "kennung", "kennzeichen", "ref", "key"})
_ENDINGS = ("nummer", "number", "nr")
#: Words and endings in `id` that number nothing, so that other words in it are taken for `…ID` without a gap (`UTILITYID`).
_ORDINARY = frozenset(
    "aid arid bid david fluid humid hybrid kid liquid lipid madrid medicaid mid morbid comorbid orchid pyramid raid rapid"
    " rigid said solid squid stupid timid vivid".split()
)
_ORDINARY_ENDINGS = ("paid", "covid", "acid", "grid", "oid", "valid")
_LONGEST_PHRASE = 3
#: Words that turn an identifying word into something harmless or coarser (`name length`, `id type`).
_HARMLESS = frozenset({"count", "length", "type", "kind", "number of", "flag", "has"})


def words_of(name: str) -> list[str]:
    """The words of a column name, lower case and without accents."""
    plain = "".join(
        c for c in unicodedata.normalize("NFKD", name.replace("ß", "ss").replace("ø", "o")) if not unicodedata.combining(c)
    )
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", plain)
    return [word for word in re.split(r"[^a-z0-9]+", spaced.lower().replace("ı", "i")) if word]


def numbers_persons(name: str) -> bool:
    """Whether the name says that the values number people and nothing else."""
    named = role_by_name(name)
    return named is not None and (named[0] == "unit" or named[1] in PERSON_NUMBERS)


def role_by_name(name: str) -> tuple[Role, str] | None:
    """The role a name suggests and the word that suggests it; the longest phrase wins, identifiers before
    others."""
    words = words_of(name)
    if _HARMLESS & set(words):
        return None
    for length in range(min(_LONGEST_PHRASE, len(words)), 0, -1):
        phrases = [" ".join(words[i : i + length]) for i in range(len(words) - length + 1)]
        for role in _PHRASES:
            for phrase in phrases:
                if phrase in _PHRASES[role] and not (role == "unit" and _numbered(words)):
                    return role, phrase
    if _numbered(words):
        return "identifier", " ".join(words)
    return ("identifier", "id") if words and _ends_in_id(words[-1]) else None


def names_postcodes(name: str) -> bool:
    """Whether the name of a column says that it holds postcodes."""
    role = role_by_name(name)
    return role is not None and role[1] in _POSTCODES


def _ends_in_id(word: str) -> bool:
    """Whether a word that no capital divides ends in `id` as `UTILITYID` does."""
    return len(word) > 3 and word.endswith("id") and word not in _ORDINARY and not word.endswith(_ORDINARY_ENDINGS)


def _numbered(words: Sequence[str]) -> bool:
    """Whether the name ends as names of numbers do: what is numbered are often people, or their cases."""
    return len(words) > 1 and words[-1] in _NUMBERING or bool(words) and len(words[-1]) > 4 and words[-1].endswith(_ENDINGS)
