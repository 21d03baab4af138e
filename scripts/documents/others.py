"""Makes files that are no documents: tables, texts, pictures and packed files; and documents of pandas."""

import csv
import hashlib
import io
import json
import sqlite3
import tarfile
import zipfile

import pandas
from PIL import Image, ImageDraw
from reportlab.graphics import renderSVG
from reportlab.graphics.shapes import Drawing, String

FRAME = pandas.DataFrame({
    "city": ["Zürich", "São Paulo", "Kraków", "Köln"], "people": [443037, 11451999, 804237, 1087353],
    "note": ["a, b", 'with "quotes"', "two\nlines", "plain"],
})
LATIN = "Der Müller mahlt früh am Morgen schöne Körner für das süße Brot.\n" * 20
TEXTS = {
    "utf8.txt": ("Grüße, 漢字, Привет\n" * 10, "utf-8"),
    "utf8-bom.txt": ("Grüße with a mark\n" * 10, "utf-8-sig"),
    "utf16.txt": ("Every line has Grüße and 漢字\n" * 10, "utf-16"),
    "utf32.txt": ("Every line has Grüße and 漢字\n" * 10, "utf-32"),
    "windows.txt": (LATIN, "cp1252"),
    "japanese.txt": ("吾輩は猫である。名前はまだ無い。どこで生れたか頓と見当がつかぬ。\n" * 20, "shift_jis"),
    "russian.txt": ("Все счастливые семьи похожи друг на друга, каждая несчастлива по-своему.\n" * 20, "koi8_r"),
    "chinese.txt": ("道可道，非常道。名可名，非常名。无名天地之始，有名万物之母。\n" * 20, "gb18030"),
    "program.py": ("def double(n):\n    return 2 * n\n", "utf-8"),
    "notes.md": ("# Notes\n\n- one\n- two\n", "utf-8"),
    "server.log": ("2026-03-02 10:00:00 ERROR disk full\r\n" * 50, "utf-8"),
    "config.yaml": ("name: example\nitems: [1, 2]\n", "utf-8"),
}


def digest(data):
    return hashlib.sha256(data.encode() if isinstance(data, str) else data).hexdigest()


def make(folder, truth):
    make_texts(folder, truth)
    make_tables(folder, truth)
    make_pictures(folder, truth)
    make_archives(folder, truth)


def make_texts(folder, truth):
    for name, (text, encoding) in TEXTS.items():
        (folder / name).write_bytes(text.encode(encoding))
        read = (folder / name).read_bytes().decode("utf-8" if encoding == "utf-8-sig" else encoding)
        truth[name] = {"type": "text", "sha256": digest(read)}  # in UTF-8, Python leaves the mark
    truth["program.py"]["type"] = "code"


def make_tables(folder, truth):
    """Each table is read again by pandas, and its text by the csv or json module."""
    as_text = [{key: str(value) for key, value in row.items()} for row in FRAME.to_dict("records")]
    for name, options in {
        "frame.csv": {}, "frame.csv.gz": {}, "frame.csv.bz2": {}, "frame.csv.xz": {}, "frame.tsv": {"sep": "\t"},
        "semicolons.csv": {"sep": ";", "encoding": "cp1252"},
    }.items():
        frame = FRAME.replace("Kraków", "Bern")  # which cp1252 can write, too
        frame.to_csv(folder / name, index=False, **options)
        assert pandas.read_csv(folder / name, **options).equals(frame)
        text = frame.to_csv(index=False, sep=options.get("sep", ","))
        rows = list(csv.DictReader(io.StringIO(text, newline=""), delimiter=options.get("sep", ",")))
        assert rows == [{**row, "city": row["city"].replace("Kraków", "Bern")} for row in as_text]
        truth[name] = {"type": "csv", "sha256": digest(text), "rows": rows}

    FRAME.to_json(folder / "frame.jsonl", orient="records", lines=True, force_ascii=False)
    text = (folder / "frame.jsonl").read_text("utf-8")
    truth["frame.jsonl"] = {"type": "jsonl", "sha256": digest(text), "rows": [json.loads(x) for x in text.splitlines()]}
    FRAME.to_json(folder / "frame.json", force_ascii=False)
    truth["frame.json"] = {"type": "json", "sha256": digest((folder / "frame.json").read_bytes())}
    FRAME.to_xml(folder / "frame.xml")
    truth["frame.xml"] = {"type": "xml", "sha256": digest((folder / "frame.xml").read_bytes())}

    with pandas.ExcelWriter(folder / "frame.xlsx", engine="xlsxwriter") as book:
        for sheet in ("First", "Second"):
            FRAME.to_excel(book, sheet_name=sheet, index=False)
    found = pandas.read_excel(folder / "frame.xlsx", sheet_name=None)
    texts = [t for sheet, rows in found.items() for t in (sheet, *rows.columns, *map(str, rows.to_numpy().flatten()))]
    truth["frame.xlsx"] = {"texts": texts, "parts": 2}
    FRAME.to_html(folder / "frame.html", index=False)
    found, = pandas.read_html(folder / "frame.html", flavor="lxml", encoding="utf-8")
    truth["frame.html"] = {"texts": [*found.columns, *map(str, found.to_numpy().flatten())], "parts": 0}

    base = sqlite3.connect(folder / "frame.db")
    FRAME.to_sql("cities", base, index=False)
    base.close()
    truth["frame.db"] = {"type": "sqlite", "sha256": digest((folder / "frame.db").read_bytes())}


def make_pictures(folder, truth):
    picture = Image.new("RGB", (64, 48), "white")
    ImageDraw.Draw(picture).ellipse((8, 8, 40, 40), fill="red")
    for name in ("dot.png", "dot.jpg", "dot.gif", "dot.webp", "dot.tiff", "dot.bmp"):
        picture.save(folder / name)
        truth[name] = {"type": name.partition(".")[2], "sha256": digest((folder / name).read_bytes())}
    drawing = Drawing(100, 20)
    drawing.add(String(0, 5, "drawn by reportlab"))
    renderSVG.drawToFile(drawing, str(folder / "drawing.svg"))
    truth["drawing.svg"] = {"type": "xml", "sha256": digest((folder / "drawing.svg").read_bytes())}


def make_archives(folder, truth):
    """An archive within a folder stays as it is."""
    with zipfile.ZipFile(folder / "packed.zip", "w") as pack:
        pack.writestr("a.txt", "in the archive")
    with tarfile.open(folder / "packed.tar", "w") as pack:
        pack.add(folder / "notes.md", "notes.md")
    for name in ("packed.zip", "packed.tar"):
        truth[name] = {"type": name.partition(".")[2], "sha256": digest((folder / name).read_bytes())}
