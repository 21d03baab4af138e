"""Reads the files with tools that have not made them, and says where these find something else."""

import email
import email.policy
import importlib.metadata
import io
import json
import logging
import mailbox
import re
import subprocess
import unicodedata
import zipfile

import duckdb
import mammoth
import pdfplumber
import python_calamine
from bs4 import BeautifulSoup
from ebooklib import epub
from odf import opendocument, teletype
from striprtf.striprtf import rtf_to_text

import pages
import plain

logging.getLogger("pdfminer").setLevel(logging.ERROR)
PACKAGES = ["beautifulsoup4", "duckdb", "ebooklib", "lxml", "mammoth", "nbformat", "odfpy", "openpyxl", "pdfplumber", "pyarrow",
            "python-calamine", "python-docx", "python-pptx", "reportlab", "striprtf", "XlsxWriter", "xlwt"]
MARK = re.compile(r"w\d{4}")


def versions():
    found = {name: importlib.metadata.version(name) for name in PACKAGES}
    if pages.find_chromium():
        shown = subprocess.run([pages.find_chromium(), "--version"], capture_output=True, text=True, check=True).stdout
        found["Chromium"] = re.search(r"\d+", shown).group()
    return found


def judge(path, known):
    """Returns the tool, and what it reads otherwise: empty if it agrees with the truth."""
    tool, read = JUDGES.get(known["maker"], (None, None))
    if tool is None:
        return None
    try:
        other = read(path, known)
    except Exception as error:  # whatever a tool raises for a file
        other = f"{type(error).__name__}: {error}"
    return {"tool": tool, "other": other or ""}


def say_difference(found, want):
    """Compares two lists."""
    for n in range(max(len(found), len(want))):
        if found[n:n + 1] != want[n:n + 1]:
            return f"{found[n:n + 1]}, the truth is {want[n:n + 1]}"[:200]
    return ""


def list_marks(known):
    """Returns the marks of all blocks: those in order, and those that may be elsewhere."""
    order, free = [], set()
    for block in known["blocks"]:
        words = json.dumps([block.get("text"), block.get("row"), block.get("table"), block.get("mark")])
        if block.get("anywhere") or block.get("optional"):
            free |= set(MARK.findall(words))
        else:
            order += MARK.findall(words)
    return order, free


def compare_marks(text, known):
    order, free = list_marks(known)
    return say_difference([m for m in MARK.findall(text) if m not in free and m != "w9999"], order)


def read_csv(path, known):
    """DuckDB reads every value as a text, with the dialect given."""
    if known["encoding"] not in ("utf-8", "utf-8-sig"):
        path = path.with_suffix(".copy")
        path.write_bytes(known["whole"].encode("utf-8"))
    dialect = known["dialect"]
    skip = known["skip"]
    rows = duckdb.read_csv(
        str(path), delimiter=dialect.get("delimiter", ","), quotechar='"', escapechar=dialect.get("escapechar", '"'),
        header=known["header"], all_varchar=True, skiprows=skip, null_padding=True, parallel=False, na_values="\1").fetchall()
    if path.suffix == ".copy":
        path.unlink()
    want = [["" if v is None else v for v in row.values()] for row in known["tables"][""]]
    return say_difference([["" if v is None else v for v in row] for row in rows], want)


def read_json(path, known):
    value = json.loads(path.read_text("utf-8-sig"))
    return say_difference([value], [known["json"]])


def read_lines(path, known):
    rows = [json.loads(line) for line in path.read_text("utf-8").split("\n") if line.strip()]
    return say_difference(rows, known["tables"][""])


def read_parquet(path, known):
    rows = duckdb.sql(f"SELECT * FROM read_parquet('{path}')")
    found = [{name: plain.plain(value) for name, value in zip(rows.columns, row)} for row in rows.fetchall()]
    return say_difference([drop_times(row) for row in found], [drop_times(row) for row in known["tables"][""]])


def drop_times(row):
    """DuckDB gives moments in the zone of the machine."""
    return {name: value for name, value in row.items() if name != "at"}


def read_workbook(path, known):
    """calamine reads values, which have no format: their rows are compared with those of the truth."""
    book = python_calamine.CalamineWorkbook.from_path(str(path))
    if list(book.sheet_names) != [sheet["name"] for sheet in known["sheets"]]:
        return f"the sheets {book.sheet_names}"
    for name, rows in known["tables"].items():
        found = [[simplify(v) for v in row] for row in book.get_sheet_by_name(name).to_python(skip_empty_area=True)]
        found = [row for row in found[1:] if any(v is not None for v in row)]
        want = [[simplify(v) for v in row.values()] for row in rows]
        difference = say_difference(found, want)
        if difference:
            return difference
    return ""


def simplify(value):
    """Numbers are numbers; times, dates and durations are left to the number that they are."""
    if value in ("", None):
        return None
    if isinstance(value, bool):
        return value
    if isinstance(value, (int, float)):
        return round(float(value), 9)
    if isinstance(value, str) and not re.match(r"\d+:\d\d:\d\d$|\d{4}-\d\d-\d\d|PT\d", value):
        return value
    return "a time"


def read_docx(path, known):
    with open(path, "rb") as file:
        return compare_marks(mammoth.convert_to_html(file).value, known)


def read_odt(path, known):
    return compare_marks(teletype.extractText(opendocument.load(str(path)).body), known)


def read_rtf(path, known):
    return compare_marks(rtf_to_text(path.read_text("ascii")), known)


def read_html(path, known):
    soup = BeautifulSoup(path.read_bytes(), "lxml")
    return compare_marks(soup.get_text("\n"), known)


def read_epub(path, known):
    book = epub.read_epub(str(path))
    chapters = [book.get_item_with_id(identifier) for identifier, _ in book.spine if identifier != "nav"]
    return compare_marks("\n".join(BeautifulSoup(c.get_body_content(), "lxml").get_text("\n") for c in chapters), known)


def read_pdf(path, known):
    with pdfplumber.open(path) as book:
        text = "\n".join(page.extract_text() for page in book.pages)
    difference = compare_marks(text, known)
    if difference:
        return difference
    plain = re.sub(r"\s", "", unicodedata.normalize("NFKC", text))
    for block in known["blocks"]:
        for words in [block["text"]] if "text" in block else block["row"]:
            if re.sub(r"\s", "", unicodedata.normalize("NFKC", words)) not in plain:
                return f"no {words!r}"
    return ""


def read_message(message):
    texts = [str(message["from"]), str(message["to"]), str(message["subject"])]
    body = message.get_body(("plain", "html"))
    if body is not None:
        texts.append(body.get_content())
    for part in message.iter_attachments():
        content = part.get_content()
        texts.append(str(part.get_filename()))
        if isinstance(content, str):
            texts.append(content)
        elif content[:2] == b"PK":
            texts.append(mammoth.convert_to_html(io.BytesIO(content)).value)
    return "\n".join(texts)


def read_eml(path, known):
    return compare_marks(read_message(email.message_from_bytes(path.read_bytes(), policy=email.policy.default)), known)


def read_mbox(path, known):
    box = mailbox.mbox(path, factory=lambda f: email.message_from_binary_file(f, policy=email.policy.default))
    return compare_marks("\n".join(read_message(message) for message in box), known)


def read_zip(path, known):
    """Python's zipfile takes names as CP437 unless the archive says UTF-8: it judges the content only."""
    with zipfile.ZipFile(path) as pack:
        return say_difference([pack.read(name).decode() for name in pack.namelist()], list(known["members"].values()))


def read_sheet_xml(path, known):
    soup = BeautifulSoup(path.read_bytes(), "xml")
    found = [cell.get_text() for cell in soup.find_all("Data") if cell["ss:Type"] == "String"]
    numbers = re.compile(r"[\d\s\-:.,%$€]+|TRUE|FALSE")
    want = [v for sheet in known["sheets"] for row in sheet["grid"] for v in row if v and not numbers.fullmatch(v)]
    return say_difference([v for v in found if not numbers.fullmatch(v)], want)


def read_text(path, known):
    return "" if path.read_bytes().decode(known["encoding"]).lstrip("\ufeff") == known["whole"].lstrip("\ufeff") else "another text"


def read_notebook(path, known):
    notebook = json.loads(path.read_text("utf-8"))
    return "" if len(notebook["cells"]) == known["parts"] else f"{len(notebook['cells'])} cells"


BOOKS = ("python-calamine", read_workbook)
JUDGES = {
    "csv": ("DuckDB", read_csv), "tsv": ("DuckDB", read_csv), "txt": ("CPython's codecs", read_text),
    "json": ("CPython's json", read_json), "ndjson": ("CPython's json", read_lines), "parquet": ("DuckDB", read_parquet),
    "openpyxl": BOOKS, "xlsxwriter": BOOKS, "xlwt": BOOKS, "ods": BOOKS, "sheetjs": BOOKS,
    "spreadsheetml": ("BeautifulSoup", read_sheet_xml), "docx": ("mammoth", read_docx), "odt": ("odfpy", read_odt),
    "rtf": ("striprtf", read_rtf), "html": ("BeautifulSoup", read_html), "epub": ("BeautifulSoup", read_epub),
    "odp": ("odfpy", read_odt), "reportlab": ("pdfplumber", read_pdf), "chromium": ("pdfplumber", read_pdf),
    "eml": ("CPython's email", read_eml), "mbox": ("CPython's email", read_mbox), "zip": ("CPython's zipfile", read_zip),
    "ipynb": ("CPython's json", read_notebook),
}
