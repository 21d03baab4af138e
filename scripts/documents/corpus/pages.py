"""Writes PDF: with reportlab, and with Chromium, which prints all pages in one process."""

import base64
import json
import os
import pathlib
import shutil
import subprocess
import tempfile

import reportlab
from reportlab.lib import colors
from reportlab.lib.pagesizes import A4, landscape
from reportlab.lib.styles import getSampleStyleSheet
from reportlab.lib.units import cm
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.cidfonts import UnicodeCIDFont
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.pdfgen import canvas
from reportlab.platypus import (BaseDocTemplate, Frame, FrameBreak, PageBreak, PageTemplate, Paragraph, SimpleDocTemplate,
                                Spacer, Table, TableStyle)
from xml.sax.saxutils import escape

import content
import papers

FONT = pathlib.Path(reportlab.__file__).parent / "fonts" / "Vera.ttf"


def make_reportlab(path, source, number):
    pdfmetrics.registerFont(TTFont("Vera", FONT))
    pdfmetrics.registerFont(UnicodeCIDFont("HeiseiMin-W3"))
    makers = [draw_lines, flow, draw_table, draw_columns, draw_turned, draw_japanese, draw_twice, draw_rotated, draw_signs]
    make = makers[number % len(makers)]
    return {**make(str(path), source, number), "feature": make.__name__}


def draw_lines(path, source, number):
    """Lines of an invoice, with numbers at the right of each."""
    page = canvas.Canvas(path, pagesize=A4, pageCompression=number // 9 % 2)
    page.setFont(["Helvetica", "Times-Roman", "Vera", "Courier"][number // 9 % 4], 10)
    blocks = []
    for n in range(2):
        for line in range(source.random.randint(5, 25)):
            said, price = source.words(), f"{source.random.randint(1, 99999) / 100:,.2f}"
            page.drawString(2 * cm, 27 * cm - line * 15, said)
            page.drawRightString(19 * cm, 27 * cm - line * 15, price)
            blocks.append({"row": [said, price]})
        page.showPage()
    page.save()
    return {"blocks": blocks, "parts": 2}


def flow(path, source, number):
    """Paragraphs that break over lines and pages."""
    styles = getSampleStyleSheet()
    story, blocks = [], []
    for n in range(source.random.randint(3, 8)):
        head, said = source.words(), " ".join(source.words() for _ in range(source.random.randint(4, 40)))
        story += [Paragraph(escape(head), styles["Heading1"]), Paragraph(escape(said), styles["BodyText"]), Spacer(1, 12)]
        blocks += [{"text": head}, {"text": said}]
    SimpleDocTemplate(path, pagesize=landscape(A4) if number // 9 % 2 else A4).build(story)
    return {"blocks": blocks}


def draw_table(path, source, number):
    """A table with lines, and cells that may be empty or merged."""
    kind = ["plain", "merged", "empty"][number // 9 % 3]
    table = content.make_table(source, kind)
    grid = [[cell for cell in row] for row in table.grid()]
    styles = [("GRID", (0, 0), (-1, -1), 0.5, colors.black), ("FONTNAME", (0, 0), (-1, 0), "Helvetica-Bold")]
    for r, row in enumerate(table.rows):
        for c, cell in enumerate(row):
            if cell and (cell.across > 1 or cell.down > 1):
                styles.append(("SPAN", (c, r), (c + cell.across - 1, r + cell.down - 1)))
    said, last = source.words(), None
    style = getSampleStyleSheet()["BodyText"]
    made = Table(grid, style=TableStyle(styles))
    SimpleDocTemplate(path, pagesize=landscape(A4)).build([made, Spacer(1, 12), Paragraph(escape(said), style)])
    return {"blocks": [{"row": row} for row in grid] + [{"text": said}], "grid": grid}


def draw_columns(path, source, number):
    """Two columns, as in a paper: the left one is read first."""
    styles = getSampleStyleSheet()
    left = Frame(2 * cm, 2 * cm, 8 * cm, 25 * cm, id="left")
    right = Frame(11 * cm, 2 * cm, 8 * cm, 25 * cm, id="right")
    document = BaseDocTemplate(path, pagesize=A4)
    document.addPageTemplates([PageTemplate(frames=[left, right])])
    story, blocks = [], []
    for column in range(2):
        for _ in range(source.random.randint(3, 6)):
            said = " ".join(source.words() for _ in range(6))
            story.append(Paragraph(escape(said), styles["BodyText"]))
            blocks.append({"text": said})
        story.append(FrameBreak() if column == 0 else PageBreak())
    document.build(story)
    return {"blocks": blocks}


def draw_turned(path, source, number):
    """Pages with /Rotate, as scanners and landscape pages have it."""
    page = canvas.Canvas(path, pagesize=A4)
    blocks = []
    for angle in (0, 90, 180, 270)[: 2 + number // 9 % 3]:
        page.setPageRotation(angle)
        for line in range(10):
            said = source.words()
            page.drawString(2 * cm, 27 * cm - line * 18, said)
            blocks.append({"text": said})
        page.showPage()
    page.save()
    return {"blocks": blocks}


def draw_japanese(path, source, number):
    """A font that is not in the file, whose letters have a table of Adobe."""
    page = canvas.Canvas(path, pagesize=A4)
    page.setFont("HeiseiMin-W3", 12)
    blocks = []
    for line in range(10):
        said = f"漢字とかな {source.mark()}"
        page.drawString(2 * cm, 27 * cm - line * 20, said)
        blocks.append({"text": said})
    page.save()
    return {"blocks": blocks}


def draw_twice(path, source, number):
    """Bold as old programs make it: the text is drawn twice, with a small shift."""
    page = canvas.Canvas(path, pagesize=A4)
    blocks = []
    for line in range(10):
        said = source.words()
        page.drawString(2 * cm, 27 * cm - line * 20, said)
        if line % 3 == 0:
            page.drawString(2 * cm + 0.3, 27 * cm - line * 20, said)
        blocks.append({"text": said})
    page.save()
    return {"blocks": blocks}


def draw_signs(path, source, number):
    """Signs of ASCII that are also accents."""
    page = canvas.Canvas(path, pagesize=A4)
    blocks = []
    for line in range(10):
        said = f"{source.random.choice(['`code`', '~tilde~', 'x^2', '2^n'])} {source.mark()}"
        page.drawString(2 * cm, 27 * cm - line * 20, said)
        blocks.append({"text": said})
    page.save()
    return {"blocks": blocks}


def draw_rotated(path, source, number):
    """Text that is itself turned, so that the page is landscape to its reader."""
    page = canvas.Canvas(path, pagesize=A4)
    page.translate(A4[0], 0)
    page.rotate(90)
    blocks = []
    for line in range(12):
        said = source.words()
        page.drawString(2 * cm, 18 * cm - line * 20, said)
        blocks.append({"text": said})
    page.save()
    return {"blocks": blocks}


def find_chromium():
    return shutil.which("chromium")


def print_pages(jobs):
    """Prints documents: (path, blocks, number). Chromium takes commands from one pipe and answers in another."""
    font = base64.b64encode(FONT.read_bytes()).decode()
    style = (f"<style>@font-face {{ font-family: V; src: url(data:font/ttf;base64,{font}) }}"
             "body { font: 9pt V } table { white-space: nowrap; font-size: 6pt } td, th { border: 1px solid; padding: 3px } table { border-collapse: collapse }"
             ".two { columns: 2 }</style>")
    with tempfile.TemporaryDirectory() as folder, Browser(folder) as browser:
        for path, blocks, number in jobs:
            two = " class=two" * (number % 5 == 4)
            page = (f"<!DOCTYPE html><html><head><meta charset=utf-8>{style}</head><body{two}>"
                    f"{papers.write_html(blocks, number)}</body></html>")
            (pathlib.Path(folder) / "page.html").write_text(page, "utf-8")
            path.write_bytes(browser.print(f"file://{folder}/page.html", landscape=number % 3 == 2))


class Browser:
    """Chromium without windows."""

    def __init__(self, folder):
        read_command, self.commands = os.pipe()
        self.answers, write_answer = os.pipe()

        def place():
            for source, target in ((read_command, 13), (write_answer, 14), (13, 3), (14, 4)):
                os.dup2(source, target)

        self.process = subprocess.Popen(
            [find_chromium(), "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe",
             f"--user-data-dir={folder}/profile", "about:blank"],
            preexec_fn=place, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(read_command)
        os.close(write_answer)
        self.rest, self.count = b"", 0

    def __enter__(self):
        target = self.call("Target.createTarget", {"url": "about:blank"})["targetId"]
        self.session = self.call("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
        self.call("Page.enable", {}, self.session)
        return self

    def __exit__(self, *_):
        self.call("Browser.close", {})
        self.process.wait()
        os.close(self.commands)
        os.close(self.answers)

    def read(self):
        while b"\0" not in self.rest:
            more = os.read(self.answers, 1 << 20)
            if not more:
                raise RuntimeError("Chromium has ended")
            self.rest += more
        message, _, self.rest = self.rest.partition(b"\0")
        return json.loads(message)

    def call(self, method, parameters, session=None):
        self.count += 1
        request = {"id": self.count, "method": method, "params": parameters}
        if session:
            request["sessionId"] = session
        os.write(self.commands, json.dumps(request).encode() + b"\0")
        while (answer := self.read()).get("id") != self.count:
            pass
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]

    def print(self, address, **options):
        self.call("Page.navigate", {"url": address}, self.session)
        while self.read().get("method") != "Page.loadEventFired":
            pass
        ready = {"expression": "document.fonts.ready.then(() => 1)", "awaitPromise": True}
        self.call("Runtime.evaluate", ready, self.session)
        return base64.b64decode(self.call("Page.printToPDF", options, self.session)["data"])
