"""Writes tables and texts as programs export them: CSV, TSV, text, JSON, JSON Lines and Parquet."""

import csv
import datetime
import decimal
import io
import json

import pyarrow as pa
import pyarrow.parquet as pq

SENTENCES = {
    "cp1252": "Der Müller mahlt früh am Morgen schöne Körner für das süße Brot. ",
    "latin-1": "Le garçon a mangé une crêpe à la fraise, près de l'école. ",
    "iso8859-2": "Zażółć gęślą jaźń, mówi żółw do źrebięcia na łące. ",
    "cp1250": "Příliš žluťoučký kůň úpěl ďábelské ódy. ",
    "koi8-r": "Все счастливые семьи похожи друг на друга, каждая несчастлива по-своему. ",
    "cp1251": "Широкая электрификация южных губерний даст мощный толчок. ",
    "iso8859-7": "Ξεσκεπάζω την ψυχοφθόρα βδελυγμία, είπε ο γέροντας. ",
    "cp1255": "דג סקרן שט בים מאוכזב ולפתע מצא חברה. ",
    "shift_jis": "吾輩は猫である。名前はまだ無い。どこで生れたか頓と見当がつかぬ。",
    "euc_jp": "いろはにほへと、ちりぬるを。吾輩は猫である。",
    "gb18030": "道可道，非常道。名可名，非常名。无名天地之始。",
    "big5": "天下皆知美之為美，斯惡已。皆知善之為善，斯不善已。",
    "euc_kr": "모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다. ",
    "utf-8": "Grüße, 漢字, Привет 🎉. ",
    "utf-8-sig": "A text with a mark, Grüße. ",
    "utf-16": "Every line has Grüße and 漢字. ",
    "utf-16-be": "Every line of this text has Grüße. ",
    "utf-32": "Every line has Grüße and 漢字. ",
    "cp437": "Die Größe der Tür beträgt über fünf Fuß, schöne Grüße. ",
    "ascii": "Plain words, nothing else; tab\there. ",
}


def make_text(path, source, number):
    """Writes a text of which the reader sees every character."""
    encoding = list(SENTENCES)[number % len(SENTENCES)]
    end = ["\n", "\r\n", "\n", "\r"][number // len(SENTENCES) % 4 if number >= len(SENTENCES) else number % 2]
    lines = [SENTENCES[encoding] + source.mark() for _ in range(12)]
    whole = end.join(lines) + end * (number % 3 > 0)
    path.write_bytes((b"\xfe\xff" if encoding == "utf-16-be" else b"") + whole.encode(encoding))
    return {"whole": mark_order(encoding) + whole, "encoding": encoding}


def mark_order(encoding):
    """Python's utf-8 keeps a byte order mark, and so does a context."""
    return "\ufeff" * (encoding == "utf-8-sig")


CELLS = ["a, b", 'with "quotes"', "two\nlines", "semi;colon", "tab\there", "a|b", " padded ", "", "NA", "007", "1e5",
         "-1,234.50", "12%", "2024-03-15", "Grüße", "漢字", "🎉", "it's", "#5", "C:\\temp\\", "NULL", "true", "+49 30 1234"]

# Each is a way in which people write CSV: options of Python's csv, and what is special.
DIALECTS = [
    {}, {"quoting": csv.QUOTE_ALL}, {"delimiter": ";"}, {"delimiter": "\t"}, {"delimiter": "|"},
    {"lineterminator": "\r\n"}, {"lineterminator": "\r"}, {"encoding": "utf-8-sig"}, {"encoding": "utf-16"},
    {"encoding": "cp1252", "delimiter": ";"}, {"preamble": ["Report of March", ""]}, {"preamble": ["# made by a program"]},
    {"header": False}, {"preamble": ["sep=;"], "delimiter": ";"}, {"blank": 2}, {"short": True},
    {"escapechar": "\\", "doublequote": False, "quoting": csv.QUOTE_ALL}, {"encoding": "shift_jis"}, {"encoding": "gb18030", "quoting": csv.QUOTE_ALL},
    {"lineterminator": "\r\n", "quoting": csv.QUOTE_NONNUMERIC},
]


def make_rows(source, width, length, fits):
    names = [f"col{n} {source.mark()}" for n in range(width)]
    rows = []
    for n in range(length):
        row = [str(1000 + n)]
        for _ in range(width - 1):
            cell = source.random.choice(CELLS)
            row.append(cell if fits(cell) else source.mark())
        rows.append(row)
    return names, rows


def make_csv(path, source, number, delimiter=None):
    """Writes rows of which csv.reader reads every value again."""
    has = dict(DIALECTS[number % len(DIALECTS)])
    if delimiter:
        has["delimiter"] = delimiter
        if has.get("preamble") == ["sep=;"]:
            has = {"delimiter": delimiter}
    encoding, preamble = has.pop("encoding", "utf-8"), has.pop("preamble", [])
    header, blank, short = has.pop("header", True), has.pop("blank", 0), has.pop("short", False)
    has.setdefault("lineterminator", "\n")

    def fits(cell):
        is_split = "\n" in cell and has["lineterminator"] == "\r"  # CPython before 3.13 does not quote it
        return not is_split and cell.encode(encoding, "ignore").decode(encoding) == cell

    names, rows = make_rows(source, source.random.randint(2, 6), source.random.randint(5, 30), fits)
    if "escapechar" in has:
        rows[1][1] = 'with "quotes"'  # without one, a backslash is a backslash
    out = io.StringIO(newline="")
    for line in preamble:
        out.write(line + has["lineterminator"])
    writer = csv.writer(out, **has)
    if header:
        writer.writerow(names)
    for n, row in enumerate(rows):
        if blank and n == 2:
            out.write(has["lineterminator"] * blank)
        if short and n % 3 == 1:
            row = row[:-1]
            rows[n] = [*row, None]
        writer.writerow(row)
    path.write_bytes(out.getvalue().encode(encoding))
    columns = names if header else [f"column_{n + 1}" for n in range(len(names))]
    return {"whole": mark_order(encoding) + out.getvalue(), "encoding": encoding, "tables": {"": [dict(zip(columns, row)) for row in rows]},
            "dialect": has, "header": header, "skip": len(preamble)}


VALUES = [0, -1, 2**31, 2**53 + 1, -2**63, 2**64 - 1, 0.1, 1e300, -2.5e-7, True, False, None, "", "Grüße", "漢字\n", "\u2028",
          "a \"q\"", "\\", "🎉", "007", "</script>", [1, [2, {"x": None}]], {"k": "v", "n": 1.5}, [], {}]


def make_objects(source):
    names = ["id", "name", "mixed", f"key {source.mark()}", "ünï"][: source.random.randint(3, 5)]
    found = []
    for n in range(source.random.randint(4, 20)):
        row = {"id": n, "name": source.words()}
        for name in names[2:]:
            if source.random.random() < 0.9:
                row[name] = source.random.choice(VALUES)
        found.append(row)
    return found


def make_json(path, source, number):
    """Writes a list of objects, or a value that is no table."""
    rows = make_objects(source)
    options = [{}, {"ensure_ascii": False}, {"indent": 2}, {"ensure_ascii": False, "indent": 4},
               {"separators": (",", ":")}][number % 5]
    value = rows if number % 3 else {"rows": rows, "of": source.words()}
    whole = json.dumps(value, **options)
    path.write_bytes(whole.encode("utf-8-sig" if number % 7 == 6 else "utf-8"))
    encoding = "utf-8-sig" if number % 7 == 6 else "utf-8"
    return {"whole": mark_order(encoding) + whole, "encoding": encoding, "json": value,
            **({"tables": {"": rows}} if number % 3 else {})}


def make_lines(path, source, number):
    rows = make_objects(source)
    end = "\r\n" if number % 4 == 3 else "\n"
    lines = [json.dumps(row, ensure_ascii=number % 2 == 0) for row in rows]
    if number % 5 == 4:
        lines.insert(2, "")
    whole = end.join(lines) + end * (number % 3 > 0)
    path.write_bytes(whole.encode("utf-8"))
    return {"whole": whole, "encoding": "utf-8", "tables": {"": rows}}


def make_parquet(path, source, number):
    random = source.random
    length = random.randint(1, 40)
    days = [datetime.date(1960, 1, 1) + datetime.timedelta(days=random.randint(0, 40000)) for _ in range(length)]
    moments = [datetime.datetime(2024, 1, 1) + datetime.timedelta(seconds=random.randint(0, 10**7)) for _ in days]
    cents = [decimal.Decimal(random.randint(-10**9, 10**9)) / 100 for _ in days]
    columns = {
        "id": pa.array([random.randint(-2**63, 2**63 - 1) for _ in days], pa.int64()),
        "large": pa.array([random.randint(0, 2**64 - 1) for _ in days], pa.uint64()),
        "word": pa.array([random.choice([None, source.words(), "", "two\nlines"]) for _ in days]),
        "ratio": pa.array([random.choice([None, random.random(), 1e300, -0.5]) for _ in days]),
        "price": pa.array(cents, pa.decimal128(14, 2)),
        "day": pa.array(days, pa.date32()),
        "at": pa.array(moments, pa.timestamp("us", tz="UTC" if number % 2 else None)),
        "ok": pa.array([random.choice([True, False, None]) for _ in days]),
        "tags": pa.array([random.sample(["x", "y", None], random.randint(0, 3)) for _ in days], pa.list_(pa.string())),
    }
    chosen = random.sample(list(columns), random.randint(4, len(columns)))
    table = pa.table({name: columns[name] for name in chosen})
    pq.write_table(table, path, compression=["snappy", "zstd", "gzip", "none", "lz4", "brotli"][number % 6],
                   data_page_version=["1.0", "2.0"][number % 2], use_dictionary=number % 3 > 0, row_group_size=17)
    return {"tables": {"": [{name: plain(value) for name, value in row.items()} for row in table.to_pylist()]}}


def plain(value):
    """A value as the rows of a context have it."""
    if isinstance(value, decimal.Decimal):
        return int(value) if value == value.to_integral() else float(value)
    if isinstance(value, (datetime.datetime, datetime.date)):
        return value.isoformat().replace("+00:00", "Z")
    return [plain(item) for item in value] if isinstance(value, list) else value
