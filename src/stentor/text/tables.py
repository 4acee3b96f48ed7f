"""Words as data: months, currencies, units, signs, abbreviations, HTML names. Knows no rule that uses them."""

from __future__ import annotations


def words(text: str) -> tuple[str, ...]:
    """A list of words, written as one."""
    return tuple(text.split())


HTML_TAGS = words(
    "a abbr address article aside b blockquote body br button center cite code dd del details div dl dt em figcaption "
    "figure font footer form h1 h2 h3 h4 h5 h6 head header hr html i iframe img input ins kbd label li link main mark "
    "meta nav ol p pre q s script section small span strong style sub summary sup table tbody td tfoot th thead title "
    "tr u ul var video audio"
)

ENTITIES = {
    "amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'", "#39": "'", "#x27": "'", "nbsp": " ", "hellip": "…",
    "mdash": "—", "ndash": "–", "lsquo": "‘", "rsquo": "'", "ldquo": "“", "rdquo": "”", "copy": "©", "reg": "®",
    "trade": "™", "deg": "°", "times": "×", "rarr": "→", "larr": "←", "bull": "•", "middot": "·",
}  # fmt: skip

MONTHS = words("January February March April May June July August September October November December")
MONTH_PREFIXES = {name[:3]: name for name in MONTHS}

AFTER_TIME = frozenset(
    words(
        "ET EST EDT PT PST PDT CT CST CDT MT MST MDT UTC GMT BST CET Eastern Pacific Central Mountain "
        "Monday Tuesday Wednesday Thursday Friday Saturday Sunday"
    )
)
"""Capitals that go on after "7 p.m."; any other begins a sentence."""

ABBREVIATIONS = {
    "e.g.": "for example", "i.e.": "that is", "etc.": "et cetera", "vs.": "versus", "approx.": "approximately",
    "a.k.a.": "also known as", "w/o": "without",
}  # fmt: skip

TITLES = {
    "Mr": "Mister", "Mrs": "Missus", "Dr": "Doctor", "Prof": "Professor", "St": "Saint", "Mt": "Mount",
    "Gen": "General",
    "Gov": "Governor", "Sen": "Senator", "Rep": "Representative", "Capt": "Captain", "Lt": "Lieutenant",
    "Col": "Colonel", "Sgt": "Sergeant", "Rev": "Reverend", "Maj": "Major", "Adm": "Admiral",
}  # fmt: skip
"""Read in full only before a name: "Dr. Smith", not "Maple Dr."."""

BEFORE_NUMBER = {
    "No": "number", "Nos": "numbers", "nos": "numbers", "Vol": "volume", "vol": "volume",
    "Fig": "figure", "fig": "figure", "Figs": "figures", "figs": "figures", "Ch": "chapter", "ch": "chapter",
    "pp": "pages", "p": "page", "Sec": "section", "sec": "section", "Eq": "equation", "eq": "equation",
}  # fmt: skip
"""Read in full only before a number: "No. 5", not "No. I won't." (Kokoro-FastAPI#260)."""

CURRENCIES: dict[str, tuple[str, str, str, str]] = {
    # sign: (one, many, one hundredth, many hundredths)
    "$": ("dollar", "dollars", "cent", "cents"),
    "US$": ("U.S. dollar", "U.S. dollars", "cent", "cents"),
    "A$": ("Australian dollar", "Australian dollars", "cent", "cents"),
    "C$": ("Canadian dollar", "Canadian dollars", "cent", "cents"),
    "CA$": ("Canadian dollar", "Canadian dollars", "cent", "cents"),
    "HK$": ("Hong Kong dollar", "Hong Kong dollars", "cent", "cents"),
    "NZ$": ("New Zealand dollar", "New Zealand dollars", "cent", "cents"),
    "R$": ("Brazilian real", "Brazilian reais", "centavo", "centavos"),
    "€": ("euro", "euros", "cent", "cents"),
    "£": ("pound", "pounds", "penny", "pence"),
    "¥": ("yen", "yen", "sen", "sen"),
    "￥": ("yuan", "yuan", "fen", "fen"),
    "₹": ("rupee", "rupees", "paisa", "paise"),
    "₩": ("won", "won", "jeon", "jeon"),
    "₽": ("ruble", "rubles", "kopeck", "kopecks"),
    "₿": ("bitcoin", "bitcoins", "", ""),
    "¢": ("cent", "cents", "", ""),
    "USD": ("U.S. dollar", "U.S. dollars", "cent", "cents"),
    "EUR": ("euro", "euros", "cent", "cents"),
    "GBP": ("pound", "pounds", "penny", "pence"),
    "CHF": ("Swiss franc", "Swiss francs", "centime", "centimes"),
    "JPY": ("yen", "yen", "sen", "sen"),
    "CNY": ("yuan", "yuan", "fen", "fen"),
    "RMB": ("yuan", "yuan", "fen", "fen"),
}

CHINESE_CURRENCIES = {
    "$": "美元", "US$": "美元", "HK$": "港元", "A$": "澳元", "C$": "加元", "CA$": "加元", "NZ$": "新西兰元",
    "R$": "雷亚尔",
    "€": "欧元", "£": "英镑", "¥": "元", "￥": "元", "₹": "卢比", "₩": "韩元", "₽": "卢布", "₿": "比特币", "¢": "美分",
    "USD": "美元", "EUR": "欧元", "GBP": "英镑", "CHF": "瑞士法郎", "JPY": "日元", "CNY": "元", "RMB": "元",
}  # fmt: skip

SCALES = {"k": "thousand", "m": "million", "mn": "million", "mm": "million", "b": "billion", "bn": "billion",
          "t": "trillion", "tn": "trillion"}  # fmt: skip
CHINESE_SCALES = {"k": 3, "thousand": 3, "m": 6, "million": 6, "b": 9, "billion": 9, "trillion": 12}
"""Zeros, because Chinese has no word for a million."""

UNITS: dict[str, tuple[str, str]] = {
    "%": ("percent", "percent"), "‰": ("per mille", "per mille"),
    "°C": ("degree Celsius", "degrees Celsius"), "℃": ("degree Celsius", "degrees Celsius"),
    "°F": ("degree Fahrenheit", "degrees Fahrenheit"), "℉": ("degree Fahrenheit", "degrees Fahrenheit"),
    "°": ("degree", "degrees"),
    "nm": ("nanometer", "nanometers"), "µm": ("micrometer", "micrometers"), "μm": ("micrometer", "micrometers"),
    "mm": ("millimeter", "millimeters"), "cm": ("centimeter", "centimeters"), "m": ("meter", "meters"),
    "km": ("kilometer", "kilometers"), "mi": ("mile", "miles"), "ft": ("foot", "feet"), "yd": ("yard", "yards"),
    "m²": ("square meter", "square meters"), "km²": ("square kilometer", "square kilometers"),
    "m2": ("square meter", "square meters"), "km2": ("square kilometer", "square kilometers"),
    "m³": ("cubic meter", "cubic meters"), "cm³": ("cubic centimeter", "cubic centimeters"),
    "sq ft": ("square foot", "square feet"), "sq mi": ("square mile", "square miles"), "ha": ("hectare", "hectares"),
    "mg": ("milligram", "milligrams"), "µg": ("microgram", "micrograms"), "g": ("gram", "grams"),
    "kg": ("kilogram", "kilograms"), "lb": ("pound", "pounds"), "lbs": ("pound", "pounds"), "oz": ("ounce", "ounces"),
    "ml": ("milliliter", "milliliters"), "mL": ("milliliter", "milliliters"), "L": ("liter", "liters"),
    "l": ("liter", "liters"),
    "ns": ("nanosecond", "nanoseconds"), "µs": ("microsecond", "microseconds"), "ms": ("millisecond", "milliseconds"),
    "s": ("second", "seconds"), "sec": ("second", "seconds"), "secs": ("second", "seconds"),
    "min": ("minute", "minutes"), "mins": ("minute", "minutes"), "h": ("hour", "hours"), "hr": ("hour", "hours"),
    "hrs": ("hour", "hours"),
    "mph": ("mile per hour", "miles per hour"), "kph": ("kilometer per hour", "kilometers per hour"),
    "rpm": ("revolution per minute", "revolutions per minute"), "bpm": ("beat per minute", "beats per minute"),
    "fps": ("frame per second", "frames per second"),
    "Hz": ("hertz", "hertz"), "kHz": ("kilohertz", "kilohertz"), "MHz": ("megahertz", "megahertz"),
    "GHz": ("gigahertz", "gigahertz"), "THz": ("terahertz", "terahertz"),
    "KB": ("kilobyte", "kilobytes"), "kB": ("kilobyte", "kilobytes"), "MB": ("megabyte", "megabytes"),
    "GB": ("gigabyte", "gigabytes"), "TB": ("terabyte", "terabytes"), "PB": ("petabyte", "petabytes"),
    "KiB": ("kibibyte", "kibibytes"), "MiB": ("mebibyte", "mebibytes"), "GiB": ("gibibyte", "gibibytes"),
    "TiB": ("tebibyte", "tebibytes"), "kbps": ("kilobit per second", "kilobits per second"),
    "Kbps": ("kilobit per second", "kilobits per second"), "Mbps": ("megabit per second", "megabits per second"),
    "Gbps": ("gigabit per second", "gigabits per second"),
    "mV": ("millivolt", "millivolts"), "V": ("volt", "volts"), "kV": ("kilovolt", "kilovolts"),
    "mA": ("milliamp", "milliamps"), "mAh": ("milliamp hour", "milliamp hours"), "W": ("watt", "watts"),
    "mW": ("milliwatt", "milliwatts"), "kW": ("kilowatt", "kilowatts"), "MW": ("megawatt", "megawatts"),
    "GW": ("gigawatt", "gigawatts"), "Wh": ("watt hour", "watt hours"), "kWh": ("kilowatt hour", "kilowatt hours"),
    "J": ("joule", "joules"), "kJ": ("kilojoule", "kilojoules"), "kcal": ("kilocalorie", "kilocalories"),
    "dB": ("decibel", "decibels"), "Pa": ("pascal", "pascals"), "hPa": ("hectopascal", "hectopascals"),
    "kPa": ("kilopascal", "kilopascals"), "psi": ("pound per square inch", "pounds per square inch"),
    "px": ("pixel", "pixels"), "pt": ("point", "points"), "dpi": ("dot per inch", "dots per inch"),
}  # fmt: skip

PER = {
    "s": "second", "sec": "second", "min": "minute", "h": "hour", "hr": "hour", "hour": "hour", "d": "day",
    "day": "day",
    "week": "week", "wk": "week", "mo": "month", "month": "month", "yr": "year", "year": "year", "m": "meter",
    "m²": "square meter", "m³": "cubic meter", "km": "kilometer", "kg": "kilogram", "lb": "pound", "L": "liter",
    "ml": "milliliter", "gal": "gallon", "GB": "gigabyte", "person": "person", "user": "user", "night": "night",
    "token": "token", "seat": "seat",
}  # fmt: skip

CHINESE_PER = {
    "s": "秒", "sec": "秒", "min": "分钟", "h": "小时", "hr": "小时", "hour": "小时", "d": "天", "day": "天",
    "week": "周", "month": "月", "year": "年", "m²": "平方米", "m³": "立方米", "km": "公里", "kg": "千克", "L": "升",
    "月": "月", "年": "年", "天": "天", "日": "日", "小时": "小时", "分钟": "分钟", "秒": "秒", "人": "人", "次": "次",
    "个": "个", "周": "周", "斤": "斤", "公斤": "公斤", "瓶": "瓶", "盒": "盒", "件": "件", "晚": "晚",
}  # fmt: skip

SIGNS: dict[str, tuple[str, str]] = {
    # sign: (English, Chinese); read wherever they stand between words or numbers
    "≥": ("is greater than or equal to", "大于等于"), "≤": ("is less than or equal to", "小于等于"),
    ">=": ("is greater than or equal to", "大于等于"), "<=": ("is less than or equal to", "小于等于"),
    "≠": ("is not equal to", "不等于"), "!=": ("is not equal to", "不等于"), "≈": ("is approximately", "约等于"),
    "==": ("equals", "等于"), "=": ("equals", "等于"), "<": ("is less than", "小于"), ">": ("is greater than", "大于"),
    "±": ("plus or minus", "正负"), "×": ("times", "乘以"), "÷": ("divided by", "除以"), "−": ("minus", "减"),
    "+": ("plus", "加"), "√": ("the square root of", "根号"), "∞": ("infinity", "无穷大"),
    "→": ("to", "到"), "->": ("to", "到"), "=>": ("to", "到"), "-->": ("to", "到"),
    "←": ("from", "来自"), "↔": ("and", "和"), "↑": ("up", "上升"), "↓": ("down", "下降"),
    "&": ("and", "和"), "@": ("at", "在"), "%": ("percent", "百分号"), "°": ("degrees", "度"),
    "§": ("section", "第"), "№": ("number", "第"), "©": ("copyright", "版权所有"), "^": ("to the power of", "的次方"),
    "²": ("squared", "平方"), "³": ("cubed", "立方"), "~": ("about", "大约"),
    "½": ("one half", "二分之一"), "¼": ("one quarter", "四分之一"), "¾": ("three quarters", "四分之三"),
    "⅓": ("one third", "三分之一"), "⅔": ("two thirds", "三分之二"), "⅛": ("one eighth", "八分之一"),
}  # fmt: skip

SPELLED: dict[str, tuple[str, str]] = {
    # the signs of an address: (English, Chinese)
    ".": ("dot", "点"), "/": ("slash", "斜杠"), "\\": ("backslash", "反斜杠"), "-": ("dash", "杠"),
    "_": ("underscore", "下划线"), ":": ("colon", "冒号"), "?": ("question mark", "问号"), "=": ("equals", "等于"),
    "&": ("and", "和"), "#": ("hash", "井号"), "%": ("percent", "百分号"), "@": ("at", "艾特"),
    "~": ("tilde", "波浪号"),
    "+": ("plus", "加"), ",": ("comma", "逗号"), ";": ("semicolon", "分号"), "!": ("exclamation mark", "感叹号"),
    "*": ("star", "星号"), "$": ("dollar", "美元"), "'": ("apostrophe", "撇号"), "(": ("open bracket", "左括号"),
    ")": ("close bracket", "右括号"), "[": ("open bracket", "左括号"), "]": ("close bracket", "右括号"),
}  # fmt: skip

TOP_LEVEL = words("com org net io ai dev app edu gov info cn uk de jp fr eu us ca au kr xyz co tv me")
FILE_ENDINGS = words(
    "py js ts tsx jsx json md txt csv tsv yaml yml toml ini cfg html css sh bat rs go java cpp hpp php rb sql xml pdf "
    "png jpg jpeg gif svg webp mp3 mp4 wav flac ogg opus webm mkv zip tar gz exe dll log docx xlsx pptx onnx gguf "
    "safetensors srt vtt lock"
)

SHORT_CODES = frozenset(words("911 112 999 110 119 120 122 113 988 311 411 10086 10010 10000 12306 12315 12345"))
"""Numbers that are dialled: read by digit after "call" and its like."""

VERSIONED = words(
    "version versions Python Node Ubuntu Debian Fedora CUDA ROCm PyTorch Linux kernel Java Go iOS macOS Android"
)
"""Before a dotted number these make it a version: "Python 3.11" is not three point one one."""
