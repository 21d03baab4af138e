"""Makes files of each format with the tools that people use, and writes what a reader must find in them.

usage: python corpus FOLDER [COUNT [SEED]] | corpus books [COUNT]

The folder gets COUNT files of each maker. The output is a JSON object: for each file its maker, its
truth, and what another tool has read in it. `books` prints workbooks for xlsb.js, since no package
of Python writes that format: xlsb.zip has the files that SheetJS has made of them, and their truth.
"""

import concurrent.futures
import json
import pathlib
import sys
import time
import zipfile

import content
import judges
import mails
import pages
import papers
import plain
import sheets

BINARY = pathlib.Path(__file__).parent / "xlsb.zip"


def make_paper(make, **options):
    def write(path, source, number):
        blocks = content.make_document(source, number, **options)
        make(path, blocks, number)
        return {"blocks": content.expect(blocks)}
    return write


def make_book(make, formulas=True, rows=True):
    def write(path, source, number):
        made = sheets.make_book(source, number, formulas)
        make(path, made, number)
        return describe_book(made, rows)
    return write


def describe_book(made, rows=True):
    return {"sheets": [{"name": sheet.name, "hidden": sheet.hidden, "grid": sheet.grid()} for sheet in made],
            "tables": {sheet.name: sheet.records() for sheet in made if sheet.first == 0 and rows}}


def export_books(count):
    """Prints workbooks, and what a reader must find in each."""
    books = {}
    for number in range(count):
        made = sheets.make_book(content.Source(f"1 sheetjs {number}"), number)
        books[f"sheetjs-{number:02d}.xlsb"] = {"sheets": [sheets.export(sheet) for sheet in made],
                                               "truth": describe_book(made)}
    json.dump(books, sys.stdout, ensure_ascii=False)


def add_binary_books(folder, truth, paths):
    with zipfile.ZipFile(BINARY) as pack:
        known = json.loads(pack.read("truth.json"))
        for name in known:
            paths[name] = pathlib.Path(pack.extract(name, folder))
            truth[name] = {"maker": "sheetjs", "format": "xlsb", **known[name]}


def make_chapters(path, source, number):
    chapters = [content.make_document(source, number + n, links=False) for n in range(1 + number % 3)]
    papers.make_epub(path, chapters)
    return {"blocks": [block for blocks in chapters for block in content.expect(blocks)]}


# The makers: their format, the ending of names, and what they do.
MAKERS = {
    "csv": ("csv", ".csv", plain.make_csv),
    "tsv": ("tsv", ".tsv", lambda path, source, number: plain.make_csv(path, source, number, "\t")),
    "txt": ("txt", ".txt", plain.make_text),
    "json": ("json", ".json", plain.make_json),
    "ndjson": ("ndjson", ".ndjson", plain.make_lines),
    "parquet": ("parquet", ".parquet", plain.make_parquet),
    "openpyxl": ("xlsx", ".xlsx", make_book(lambda path, made, number: sheets.make_openpyxl(path, made))),
    "xlsxwriter": ("xlsx", ".xlsx", make_book(sheets.make_xlsxwriter)),
    "xlwt": ("xls", ".xls", make_book(lambda path, made, number: sheets.make_xls(path, made), formulas=False)),
    "ods": ("ods", ".ods", make_book(lambda path, made, number: sheets.make_ods(path, made))),
    "spreadsheetml": ("xml", ".xml", make_book(lambda path, made, number: sheets.make_spreadsheetml(path, made),
                                              formulas=False, rows=False)),
    "docx": ("docx", ".docx", make_paper(lambda path, blocks, number: papers.make_docx(path, blocks))),
    "odt": ("odt", ".odt", make_paper(lambda path, blocks, number: papers.make_odt(path, blocks))),
    "rtf": ("rtf", ".rtf", make_paper(papers.make_rtf, nested=False)),
    "html": ("html", ".html", make_paper(papers.make_html)),
    "epub": ("epub", ".epub", make_chapters),
    "pptx": ("pptx", ".pptx", mails.make_pptx),
    "odp": ("odp", ".odp", mails.make_odp),
    "reportlab": ("pdf", ".pdf", pages.make_reportlab),
    "eml": ("eml", ".eml", mails.make_eml),
    "mbox": ("mbox", ".mbox", mails.make_mbox),
    "zip": ("zip", ".zip", mails.make_zip),
    "ipynb": ("ipynb", ".ipynb", mails.make_notebook),
}
FEW = {"reportlab": content.BASIC}


def main():
    if sys.argv[1] == "books":
        return export_books(int(sys.argv[2]) if len(sys.argv) > 2 else 18)
    folder = pathlib.Path(sys.argv[1])
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 18
    seed = sys.argv[3] if len(sys.argv) > 3 else "1"
    truth, paths = {}, {}

    for maker, (kind, ending, make) in MAKERS.items():
        begun = time.perf_counter()
        for number in range(count):
            path = folder / f"{maker}-{number:02d}{ending}"
            source = content.Source(f"{seed} {maker} {number}", FEW.get(maker))
            truth[path.name] = {"maker": maker, "format": kind, **make(path, source, number)}
            paths[path.name] = path
        print(f"{maker}: {time.perf_counter() - begun:.1f}s", file=sys.stderr)
    add_binary_books(folder, truth, paths)
    print_all(folder, truth, paths, count, seed)

    begun = time.perf_counter()
    with concurrent.futures.ProcessPoolExecutor() as pool:
        verdicts = pool.map(judges.judge, paths.values(), (truth[name] for name in paths), chunksize=5)
        for name, verdict in zip(paths, verdicts):
            truth[name]["judge"] = verdict
    print(f"judges: {time.perf_counter() - begun:.1f}s", file=sys.stderr)
    json.dump({"files": truth, "versions": judges.versions()}, sys.stdout, ensure_ascii=False)


def print_all(folder, truth, paths, count, seed):
    """Adds what Chromium prints, if there is one."""
    if not pages.find_chromium():
        return
    begun, jobs = time.perf_counter(), []
    for number in range(count):
        source = content.Source(f"{seed} chromium {number}", content.EUROPEAN)
        blocks = content.make_document(source, number, paper=True, links=number % 2 == 0, notes=False)
        if number % 5 == 4:  # a column is too narrow for rows
            blocks = [block for block in blocks if block.kind != "table"]
        path = folder / f"chromium-{number:02d}.pdf"
        jobs.append((path, blocks, number))
        found = []
        for block in content.expect(blocks):
            found += [{"row": row} for row in block["table"]] if "table" in block else [{"text": block["text"]}]
        truth[path.name] = {"maker": "chromium", "format": "pdf", "blocks": found}
        paths[path.name] = path
    pages.print_pages(jobs)
    print(f"chromium: {time.perf_counter() - begun:.1f}s", file=sys.stderr)


main()
