"""Makes documents with the tools that people use, and writes what these tools read in them.

usage: make.py FOLDER

It prints a JSON object: for each document the texts that must occur in this order and how many
parts it has, for each other file its type and the digest of its text or bytes.
"""

import email.policy
import io
import json
import mailbox
import pathlib
import sys
from email.message import EmailMessage

import docx
import nbformat
import others
import openpyxl
import pandas
import pptx
import xlwt
from bs4 import BeautifulSoup
from ebooklib import epub
from odf import opendocument, style, table, teletype, text
from odf import draw as odfdraw
from odf import presentation
from pypdf import PdfReader, PdfWriter
from reportlab.lib.pagesizes import A4
from reportlab.pdfgen import canvas

WORDS = ["Grüße aus Zürich", "naïve café", "漢字とかな", "Привет мир", "αβγδ", "a | b", "x < y & z"]

truth = {}


def keep(name, texts, parts, problem=""):
    truth[name] = {"texts": [t for t in texts if t.strip()], "parts": parts, "problem": problem}


def make_pdf(folder):
    name = folder / "report.pdf"
    page = canvas.Canvas(str(name), pagesize=A4)
    for number in range(12):
        for line in range(40):
            page.drawString(50, 800 - 18 * line, f"Page {number} line {line}: invoice INV-{number:03d}{line:02d} "
                            f"total {line * 13.5:.2f} EUR")
        page.showPage()
    page.save()
    pages = [p.extract_text() for p in PdfReader(name).pages]
    keep(name.name, [line for p in pages for line in p.splitlines()], len(pages))

    locked = PdfWriter(clone_from=name)
    locked.encrypt("secret", algorithm="RC4-128")
    locked.write(folder / "locked.pdf")
    keep("locked.pdf", [], 0, "encrypted")
    readable = PdfWriter(clone_from=name)
    readable.encrypt("", "owner", algorithm="RC4-128")
    readable.write(folder / "owned.pdf")
    keep("owned.pdf", [line for p in pages for line in p.splitlines()], len(pages))

    scan = canvas.Canvas(str(folder / "scan.pdf"), pagesize=A4)
    for _ in range(3):
        scan.rect(50, 50, 300, 300, fill=1)
        scan.showPage()
    scan.save()
    keep("scan.pdf", [], 0, "no text")


def make_docx(folder):
    document = docx.Document()
    document.add_heading("Annual report", 1)
    for words in WORDS:
        document.add_paragraph(words)
    document.add_paragraph("first item", style="List Bullet")
    grid = document.add_table(3, 2)
    for row in range(3):
        for column in range(2):
            grid.cell(row, column).text = f"cell {row}-{column}"
    document.add_heading("Outlook", 2)
    document.add_paragraph("The end.")
    name = folder / "report.docx"
    document.save(name)

    texts = []
    for item in docx.Document(str(name)).iter_inner_content():
        if isinstance(item, docx.table.Table):
            texts += [cell.text for row in item.rows for cell in row.cells]
        else:
            texts.append(item.text)
    keep(name.name, texts, 0)


def make_xlsx(folder):
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "Sales"
    sheet.append(["item", "count", "price"])
    for row in range(500):
        sheet.append([f"item{row}", row, row * 1.5])
    other = book.create_sheet("Köpfe")
    for words in WORDS:
        other.append([words, len(words)])
    name = folder / "sales.xlsx"
    book.save(name)

    texts = []
    for found in openpyxl.load_workbook(name):
        texts.append(found.title)
        texts += [f"{value:g}" if isinstance(value, float) else str(value)
                  for row in found.iter_rows(values_only=True) for value in row if value is not None]
    keep(name.name, texts, 2)


def make_xls(folder):
    book = xlwt.Workbook()
    sheet = book.add_sheet("Old")
    for row, words in enumerate(WORDS):
        sheet.write(row, 0, words)
        sheet.write(row, 1, row)
    book.save(str(folder / "old.xls"))
    keep("old.xls", ["Old", *(t for row, words in enumerate(WORDS) for t in (words, str(row)))], 1)


def make_pptx(folder):
    deck = pptx.Presentation()
    for number, words in enumerate(WORDS):
        slide = deck.slides.add_slide(deck.slide_layouts[1])
        slide.shapes.title.text = f"Slide about {number}"
        slide.placeholders[1].text = words
    name = folder / "deck.pptx"
    deck.save(name)
    texts = [shape.text_frame.text for slide in pptx.Presentation(str(name)).slides for shape in slide.shapes]
    keep(name.name, texts, len(WORDS))


def make_opendocument(folder):
    document = opendocument.OpenDocumentText()
    document.text.addElement(text.H(outlinelevel=1, text="Annual report"))
    for words in WORDS:
        document.text.addElement(text.P(text=words))
    items = text.List()
    for words in ("first item", "second item"):
        item = text.ListItem()
        item.addElement(text.P(text=words))
        items.addElement(item)
    document.text.addElement(items)
    name = folder / "report.odt"
    document.save(str(name))
    found = opendocument.load(str(name)).text
    keep(name.name, [teletype.extractText(e) for kind in (text.H, text.P) for e in found.getElementsByType(kind)], 0)

    book = opendocument.OpenDocumentSpreadsheet()
    for title in ("Sales", "Other"):
        grid = table.Table(name=title)
        for number, words in enumerate(WORDS):
            row = table.TableRow()
            for value in (words, str(number)):
                cell = table.TableCell(valuetype="string")
                cell.addElement(text.P(text=value))
                row.addElement(cell)
            row.addElement(table.TableCell(numbercolumnsrepeated=1000))
            grid.addElement(row)
        last = table.TableRow(numberrowsrepeated=1_000_000)
        last.addElement(table.TableCell(numbercolumnsrepeated=1002))
        grid.addElement(last)
        book.spreadsheet.addElement(grid)
    name = folder / "sales.ods"
    book.save(str(name))
    found = opendocument.load(str(name)).spreadsheet
    texts = []
    for grid in found.getElementsByType(table.Table):
        texts.append(grid.getAttribute("name"))
        texts += [teletype.extractText(p) for p in grid.getElementsByType(text.P)]
    keep(name.name, texts, 2)

    deck = opendocument.OpenDocumentPresentation()
    layout = style.PageLayout(name="layout")
    deck.automaticstyles.addElement(layout)
    master = style.MasterPage(name="master", pagelayoutname=layout)
    deck.masterstyles.addElement(master)
    for number, words in enumerate(WORDS):
        page = odfdraw.Page(name=f"page{number}", masterpagename=master)
        frame = odfdraw.Frame(width="10cm", height="2cm")
        box = odfdraw.TextBox()
        box.addElement(text.P(text=words))
        frame.addElement(box)
        page.addElement(frame)
        deck.presentation.addElement(page)
    name = folder / "deck.odp"
    deck.save(str(name))
    found = opendocument.load(str(name)).presentation
    keep(name.name, [teletype.extractText(p) for p in found.getElementsByType(text.P)], len(WORDS))


def make_epub(folder):
    book = epub.EpubBook()
    book.set_identifier("id")
    book.set_title("A book")
    book.set_language("en")
    chapters = []
    for number, words in enumerate(WORDS[:4]):
        chapter = epub.EpubHtml(title=f"Chapter {number}", file_name=f"text/chap {number}.xhtml", lang="en")
        chapter.content = f"<h1>The chapter {number}</h1><p>{words}</p>"
        book.add_item(chapter)
        chapters.append(chapter)
    book.spine = chapters
    book.add_item(epub.EpubNcx())
    book.add_item(epub.EpubNav())
    name = folder / "book.epub"
    epub.write_epub(str(name), book)

    found = epub.read_epub(str(name))
    texts = []
    for identifier, _ in found.spine:
        page = BeautifulSoup(found.get_item_with_id(identifier).get_body_content(), "html.parser")
        texts += page.get_text("\n").split("\n")
    keep(name.name, texts, 4)


def make_mail(folder):
    box = mailbox.mbox(folder / "archive.mbox", create=True)
    texts = []
    for number, words in enumerate(WORDS):
        message = EmailMessage(policy=email.policy.SMTP)
        message["From"] = "Ada Lovelace <ada@example.com>"
        message["To"] = "bob@example.com"
        message["Date"] = "Mon, 02 Mar 2026 10:00:00 +0000"
        message["Subject"] = f"Message {number}: {words}"
        message.set_content(f"Hello,\n{words}\nFrom there on\n")
        message.add_alternative(f"<p>Hello,<br>{words}</p>", subtype="html")
        if number == 2:
            message.add_attachment((folder / "report.docx").read_bytes(), maintype="application",
                                   subtype="octet-stream", filename="report.docx")
            (folder / "message.eml").write_bytes(message.as_bytes())
        box.add(mailbox.mboxMessage(message))
    box.close()
    for message in mailbox.mbox(folder / "archive.mbox", factory=lambda f: email.message_from_binary_file(
            f, policy=email.policy.default)):
        texts += [message["subject"], *message.get_body(("plain",)).get_content().replace(">From", "From").splitlines()]
        if message["subject"].startswith("Message 2"):
            texts += ["report.docx", "Annual report", "漢字とかな"]
    keep("archive.mbox", texts, len(WORDS))
    keep("message.eml", ["Ada Lovelace", "Message 2", "漢字とかな", "report.docx", "Annual report"], 0)


def make_page(folder):
    page = "<html><head><title>The title</title><style>p{}</style></head><body><script>alert(1)</script>"
    page += "<h1>Head</h1>" + "".join(f"<p>{w.replace('&', '&amp;').replace('<', '&lt;')}</p>" for w in WORDS[:5])
    page += "<table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table></body></html>"
    (folder / "page.html").write_text(page, "utf-8")
    soup = BeautifulSoup(page, "html.parser")
    for hidden in soup(["script", "style"]):
        hidden.decompose()
    keep("page.html", soup.get_text("\n").split("\n"), 0)


def make_tables(folder):
    """Writes tables with merged cells and headers of rows. pandas and the tools that made them read them."""
    page = ("<table><thead><tr><th rowspan=2>City</th><th colspan=2>People</th></tr><tr><th>2019</th><th>2020</th></tr>"
            "</thead><tbody>" + "".join(f"<tr><th scope=row>city{n}</th><td>{n}01</td><td>{n}02</td></tr>"
                                        for n in range(1, 30)) + "</tbody></table>")
    (folder / "cities.html").write_text(page, "utf-8")
    rows = pandas.read_html(io.StringIO(page), flavor="lxml")[0].itertuples(index=False)
    keep("cities.html", ["City", "People", "2019", "2020", *(str(value) for row in rows for value in row)], 0)

    document = docx.Document()
    grid = document.add_table(4, 3)
    for row in range(4):
        for column in range(3):
            grid.cell(row, column).text = f"w{row}{column}"
    grid.cell(0, 1).merge(grid.cell(0, 2)).text = "wide"
    grid.cell(1, 0).merge(grid.cell(2, 0)).text = "high"
    document.save(folder / "merged.docx")
    seen, texts = set(), []
    for row in docx.Document(str(folder / "merged.docx")).tables[0].rows:
        for cell in row.cells:
            if cell._tc not in seen:
                texts.append(cell.text)
            seen.add(cell._tc)
    keep("merged.docx", texts, 0)

    deck = pptx.Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[6])
    grid = slide.shapes.add_table(4, 3, 0, 0, 5_000_000, 2_000_000).table
    for row in range(4):
        for column in range(3):
            grid.cell(row, column).text = f"p{row}{column}"
    grid.cell(0, 1).merge(grid.cell(0, 2))
    grid.cell(1, 0).merge(grid.cell(2, 0))
    deck.save(folder / "merged.pptx")
    grid = pptx.Presentation(str(folder / "merged.pptx")).slides[0].shapes[0].table
    keep("merged.pptx", [line for row in grid.rows for cell in row.cells if not cell.is_spanned
                         for line in cell.text.splitlines()], 1)


def make_turned(folder):
    """Writes pages that are shown turned. pypdf reads them."""
    name = folder / "turned.pdf"
    page = canvas.Canvas(str(name), pagesize=A4)
    for angle in (0, 90, 180, 270):
        page.setPageRotation(angle)
        for line in range(20):
            page.drawString(50, 800 - 18 * line, f"Angle {angle} line {line}: total {line * 13.5:.2f} EUR")
        page.showPage()
    page.save()
    pages = [p.extract_text() for p in PdfReader(name).pages]
    keep(name.name, [line for p in pages for line in p.splitlines()], len(pages))


def make_notebook(folder):
    notebook = nbformat.v4.new_notebook()
    code = nbformat.v4.new_code_cell("print('hello')\nx = [1, 2]\nx")
    code.outputs = [nbformat.v4.new_output("stream", text="hello\n"),
                    nbformat.v4.new_output("execute_result", {"text/plain": "[1, 2]"})]
    notebook.cells = [nbformat.v4.new_markdown_cell("# Analysis\n\n" + WORDS[0]), code]
    nbformat.write(notebook, folder / "analysis.ipynb")
    texts = []
    for cell in nbformat.read(folder / "analysis.ipynb", 4).cells:
        texts += cell.source.splitlines()
        for output in cell.get("outputs", []):
            texts.append(output.get("text", output.get("data", {}).get("text/plain", "")).strip())
    keep("analysis.ipynb", texts, 2)


def make_rtf(folder):
    escaped = "\\par ".join("".join(c if ord(c) < 128 else f"\\u{ord(c)}?" for c in w) for w in WORDS)
    (folder / "note.rtf").write_text(
        "{\\rtf1\\ansi\\ansicpg1252{\\fonttbl{\\f0 Arial;}}{\\*\\generator x;}\\f0 Gr\\'fc\\'dfe\\par " + escaped
        + "\\par \\trowd\\cellx1000\\cellx2000\\intbl one\\cell two\\cell\\row\\pard last\\par}", "ascii")
    keep("note.rtf", ["Grüße", *WORDS[:5], "one", "two", "last"], 0)


def main():
    folder = pathlib.Path(sys.argv[1])
    for make in (make_pdf, make_docx, make_xlsx, make_xls, make_pptx, make_opendocument, make_epub, make_mail,
                 make_page, make_tables, make_turned, make_notebook, make_rtf):
        make(folder)
    others.make(folder, truth)
    for name, known in truth.items():
        if known.get("problem"):
            known["sha256"] = others.digest((folder / name).read_bytes())
    json.dump(truth, sys.stdout)


main()
