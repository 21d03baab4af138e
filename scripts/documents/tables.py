"""Makes files that are tables with the tools that people use, and writes the rows that these tools
read in them.

usage: tables.py FOLDER [ROWS]

truth.json has, for each file, the names of its tables, and the columns and rows of each.
"""

import datetime
import decimal
import json
import math
import pathlib
import sqlite3
import sys

import openpyxl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import xlwt
from odf import opendocument
from odf import table as odftable
from odf import text as odftext

ROWS = int(sys.argv[2]) if len(sys.argv) > 2 else 3000
UTC = datetime.timezone.utc
WORDS = ["Grüße", "漢字", "a \"quote\"", "two\nlines", "", "tab\there", "\\ \u2028 \x7f", "🎉"]

truth = {}


def plain(value):
    """A value as the rows of a context have it."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, decimal.Decimal):
        return float(value) if value != value.to_integral() or "." in str(value) else int(value)
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, datetime.datetime):
        is_milli = value.microsecond > 0 and value.microsecond % 1000 == 0
        return value.isoformat(timespec="milliseconds" if is_milli else "auto").replace("+00:00", "Z")
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, list):
        if value and all(isinstance(pair, tuple) and len(pair) == 2 for pair in value):
            return {key: plain(item) for key, item in value}
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return value


def keep(path, tables):
    truth[path.name] = [
        {"name": name, "columns": columns, "rows": [[plain(v) for v in row] for row in rows]}
        for name, columns, rows in tables
    ]


def make_table():
    times = [datetime.datetime(2024, 3, 1, 12, 30, 15, 250000) + datetime.timedelta(hours=n) for n in range(ROWS)]

    def sparse(values):
        return [None if n % 7 == 3 else value for n, value in enumerate(values)]

    return pa.table({
        "id": pa.array(range(ROWS), pa.int64()),
        "small": pa.array(sparse([n % 100 - 50 for n in range(ROWS)]), pa.int8()),
        "large": pa.array([2**64 - 1 - n for n in range(ROWS)], pa.uint64()),
        "ratio": pa.array(sparse([n / 7 for n in range(ROWS)])),
        "odd": pa.array([[math.nan, math.inf, -0.5][n % 3] for n in range(ROWS)]),
        "ok": pa.array(sparse([n % 2 == 0 for n in range(ROWS)])),
        "word": pa.array(sparse([WORDS[n % len(WORDS)] for n in range(ROWS)])),
        "city": pa.array([["Köln", "Paris", None][n % 3] for n in range(ROWS)]).dictionary_encode(),
        "data": pa.array([bytes([n % 256, 255]) for n in range(ROWS)]),
        "day": pa.array([t.date() for t in times], pa.date32()),
        "time": pa.array(times, pa.timestamp("ms")),
        "moment": pa.array([t.replace(tzinfo=UTC) for t in times], pa.timestamp("us", tz="UTC")),
        "price": pa.array([decimal.Decimal(n) / 4 for n in range(ROWS)], pa.decimal128(12, 2)),
        "tags": pa.array([["x", None, "y"][: n % 4] for n in range(ROWS)], pa.list_(pa.string())),
        "at": pa.array([{"x": n, "y": [n, n + 1]} for n in range(ROWS)]),
        "counts": pa.array([[("a", n), ("b", None)] for n in range(ROWS)], pa.map_(pa.string(), pa.int32())),
        "a \"name\"\n": pa.array(["v"] * ROWS),
        "nothing": pa.nulls(ROWS),
    })


def make_columnar(folder):
    table = make_table()
    rows = [list(row.values()) for row in table.to_pylist()]
    for codec in ["none", "snappy", "gzip", "zstd", "lz4", "brotli"]:
        path = folder / f"{codec}.parquet"
        pq.write_table(table, path, compression=codec, row_group_size=700)
        keep(path, [("", table.column_names, rows)])
    path = folder / "v2.parquet"
    pq.write_table(table, path, data_page_version="2.0", version="2.6", use_dictionary=False,
                   column_encoding={"id": "DELTA_BINARY_PACKED", "word": "DELTA_BYTE_ARRAY",
                                    "ratio": "BYTE_STREAM_SPLIT"}, compression="zstd")
    keep(path, [("", table.column_names, rows)])
    path = folder / "empty.parquet"
    pq.write_table(table.slice(0, 0), path)
    keep(path, [("", table.column_names, [])])

    for codec in [None, "lz4", "zstd"]:
        options = pa.ipc.IpcWriteOptions(compression=codec)
        for name, new in [("file", pa.ipc.new_file), ("stream", pa.ipc.new_stream)]:
            path = folder / f"{name}-{codec}.arrow"
            with new(path, table.schema, options=options) as writer:
                writer.write_table(table, max_chunksize=900)
            keep(path, [("", table.column_names, rows)])
    path = folder / "v2.feather"
    pyarrow.feather.write_feather(table, path)
    keep(path, [("", table.column_names, rows)])

    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2]), pa.array([3])], ["n", "n", ""])
    path = folder / "twice.parquet"
    pq.write_table(twice, path)
    keep(path, [("", ["n", "n_2", "column_3"], [[1, 2, 3]])])


SHEETS = [
    ("Sales", ["item", "price", "sold", "day", "at", "ok", "item"],
     [[WORDS[n % 4] or None, n / 4, n, datetime.datetime(2024, 3, 1) + datetime.timedelta(days=n),
       datetime.datetime(2024, 3, 1, 10, 30, n % 60), n % 2 == 0, f"x{n}" if n % 5 else None] for n in range(min(ROWS, 300))]),
    ("Köpfe & mehr", ["name", "n"], [["Ada", 1], [None, 2], ["007", None]]),
]


def spread(row):
    """Dates without a time of day are dates."""
    return [v.date() if isinstance(v, datetime.datetime) and v.time() == datetime.time() else v for v in row]


def keep_sheets(path):
    tables = []
    for name, columns, rows in SHEETS:
        columns = ["item_2" if n and c == "item" else c for n, c in enumerate(columns)]
        tables.append((name, columns, [spread(row) for row in rows]))
    keep(path, tables)


def make_workbooks(folder):
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, columns, rows in SHEETS:
        sheet = book.create_sheet(name)
        sheet.append(columns)
        for row in rows:
            sheet.append(row)
    book.save(folder / "book.xlsx")
    keep_sheets(folder / "book.xlsx")

    old = xlwt.Workbook()
    day = xlwt.easyxf(num_format_str="yyyy-mm-dd")
    time = xlwt.easyxf(num_format_str="yyyy-mm-dd hh:mm:ss")
    for name, columns, rows in SHEETS:
        sheet = old.add_sheet(name)
        for r, row in enumerate([columns, *rows]):
            for c, value in enumerate(row):
                if isinstance(value, datetime.datetime):
                    sheet.write(r, c, value, time if value.time() != datetime.time() else day)
                elif value is not None:
                    sheet.write(r, c, value)
    old.save(str(folder / "book.xls"))
    keep_sheets(folder / "book.xls")

    open_book = opendocument.OpenDocumentSpreadsheet()
    for name, columns, rows in SHEETS:
        sheet = odftable.Table(name=name)
        for row in [columns, *rows]:
            line = odftable.TableRow()
            for value in row:
                line.addElement(make_cell(value))
            sheet.addElement(line)
        open_book.spreadsheet.addElement(sheet)
    open_book.save(str(folder / "book.ods"))
    keep_sheets(folder / "book.ods")


def make_cell(value):
    if value is None:
        return odftable.TableCell()
    if isinstance(value, bool):
        return odftable.TableCell(valuetype="boolean", booleanvalue=str(value).lower())
    if isinstance(value, (int, float)):
        return odftable.TableCell(valuetype="float", value=value)
    if isinstance(value, datetime.datetime):
        day = value.date() if value.time() == datetime.time() else value
        return odftable.TableCell(valuetype="date", datevalue=day.isoformat())
    cell = odftable.TableCell(valuetype="string")
    for line in value.split("\n"):
        cell.addElement(odftext.P(text=line))
    return cell


def make_database(folder):
    path = folder / "shop.sqlite"
    path.unlink(missing_ok=True)
    db = sqlite3.connect(path)
    db.executescript("""
        CREATE TABLE orders(id INTEGER PRIMARY KEY, name TEXT, price REAL, data BLOB, any);
        CREATE TABLE "two words"(a, "b c");
        CREATE VIEW cheap AS SELECT id, price FROM orders WHERE price < 5;
        CREATE INDEX by_name ON orders(name);
    """)
    db.executemany("INSERT INTO orders VALUES(?, ?, ?, ?, ?)", [
        (n, WORDS[n % len(WORDS)], n / 4, bytes([n % 256]) if n % 3 else None, [n, str(n), None][n % 3])
        for n in range(1, ROWS)])
    db.execute("INSERT INTO \"two words\" VALUES(1, 2)")
    db.commit()
    tables = []
    for name in ["orders", "two words", "cheap"]:
        rows = db.execute(f'SELECT * FROM "{name}"')
        tables.append((name, [column[0] for column in rows.description], rows.fetchall()))
    db.close()
    keep(path, tables)


if __name__ == "__main__":
    target = pathlib.Path(sys.argv[1])
    make_columnar(target)
    make_workbooks(target)
    make_database(target)
    (target / "truth.json").write_text(json.dumps(truth, ensure_ascii=False), encoding="utf-8")
