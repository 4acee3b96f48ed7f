"""Languages by code and by name. Owns the one spelling used inside (ISO 639-1, lower case); knows no model."""

from __future__ import annotations

_TABLE = """
af:afrikaans am:amharic ar:arabic as:assamese az:azerbaijani ba:bashkir be:belarusian bg:bulgarian bn:bengali bo:tibetan
br:breton bs:bosnian ca:catalan cs:czech cy:welsh da:danish de:german el:greek en:english es:spanish et:estonian
eu:basque fa:persian fi:finnish fil:filipino fo:faroese fr:french gl:galician gu:gujarati ha:hausa haw:hawaiian
he:hebrew hi:hindi hr:croatian ht:haitian hu:hungarian hy:armenian id:indonesian is:icelandic it:italian ja:japanese
jw:javanese ka:georgian kk:kazakh km:khmer kn:kannada ko:korean la:latin lb:luxembourgish ln:lingala lo:lao
lt:lithuanian lv:latvian mg:malagasy mi:maori mk:macedonian ml:malayalam mn:mongolian mr:marathi ms:malay mt:maltese
my:myanmar ne:nepali nl:dutch nn:nynorsk no:norwegian oc:occitan pa:punjabi pl:polish ps:pashto pt:portuguese
ro:romanian ru:russian sa:sanskrit sd:sindhi si:sinhala sk:slovak sl:slovenian sn:shona so:somali sq:albanian
sr:serbian su:sundanese sv:swedish sw:swahili ta:tamil te:telugu tg:tajik th:thai tk:turkmen tl:tagalog tr:turkish
tt:tatar uk:ukrainian ur:urdu uz:uzbek vi:vietnamese yi:yiddish yo:yoruba yue:cantonese zh:chinese
"""

NAMES: dict[str, str] = dict(pair.split(":") for pair in _TABLE.split())
"""ISO code to English name in lower case, as OpenAI's verbose_json spells it (facts/qwen3-asr.md 3.1)."""

_CODES = {name: code for code, name in NAMES.items()} | {"mandarin": "zh", "iw": "he", "farsi": "fa"}


def code(language: str | None) -> str | None:
    """The ISO code of a code, a region tag or an English name: `EN`, `en-US`, `zh_Hans`, `English` → `en`, `zh`.

    None, an empty string and `auto` mean "detect" and give None. What is not known is returned in lower case, so that
    the model that lacks it can name it.
    """
    spoken = (language or "").strip().lower()
    if spoken in ("", "auto", "none"):
        return None
    short = spoken.replace("_", "-").split("-")[0]
    return _CODES.get(spoken) or _CODES.get(short) or short


def name(language: str) -> str:
    """The English name of a code; the code itself where it is not known."""
    return NAMES.get(language, language)
