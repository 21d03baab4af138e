"""Writes messages, mailboxes, archives, notebooks and slides."""

import email.policy
import io
import json
import mailbox
import zipfile
from email.message import EmailMessage

import nbformat
import pptx
from odf import draw, opendocument, presentation, style, text as odftext
from odf.namespaces import PRESENTATIONNS
from pptx.util import Inches

import content
import papers

CHARSETS = ["utf-8", "utf-8", "iso-8859-1", "windows-1252", "koi8-r", "iso-2022-jp", "shift_jis", "gb2312", "us-ascii"]
SAMPLES = {"koi8-r": "Привет мир", "iso-2022-jp": "漢字とかな", "shift_jis": "漢字とかな", "gb2312": "中文字符",
           "iso-8859-1": "Grüße, café", "windows-1252": "“curly” Grüße €", "us-ascii": "plain words"}


def make_message(source, number):
    """Returns a message, and what a reader finds in it."""
    charset = CHARSETS[number % len(CHARSETS)]
    said = SAMPLES.get(charset, "Grüße 漢字 🎉")
    lines = [f"{said} {source.mark()}" for _ in range(source.random.randint(2, 5))]
    found = {"subject": f"{said} subject {source.mark()}", "from": f"Ada {source.mark()}", "to": "bob@example.com"}
    message = EmailMessage(policy=email.policy.SMTP)
    message["From"] = f'"{found["from"]}" <ada@example.com>'
    message["To"] = found["to"]
    message["Date"] = "Mon, 02 Mar 2026 10:00:00 +0000"
    message["Subject"] = found["subject"]
    expected = [{"text": found["from"]}, {"text": found["to"]}, {"text": found["subject"]}]

    encoding = ["quoted-printable", "base64", "8bit", "7bit"][number % 4]
    if charset == "us-ascii":
        encoding = "7bit"
    elif encoding == "7bit" and charset != "iso-2022-jp":
        encoding = "base64"
    body = "\n".join(lines) + "\n"
    kind = number % 5
    if kind == 1:  # HTML alone
        message.set_content(page(lines), subtype="html", charset=charset, cte=encoding)
    else:
        message.set_content(body, charset=charset, cte=encoding)
    if kind == 2:  # the same text twice
        message.add_alternative(page(lines), subtype="html", charset=charset, cte=encoding)
    expected += [{"text": line} for line in lines]
    if kind in (3, 4):
        expected += attach(message, source, number)
    return message, expected


def page(lines):
    rows = "".join(f"<p>{line}</p>" for line in lines)
    return f"<html><head><style>p {{ color: red }}</style></head><body>{rows}</body></html>\n"


def attach(message, source, number):
    """Adds files: a text, bytes and a message, or a document. The text of bytes is not read."""
    name = ["list.csv", "Übersicht 2024.txt", "quarterly report with a long name, see the appendix for details.txt"][number % 3]
    inner = f"inner {source.mark()}"
    expected = [{"text": name}]
    if number % 2:
        message.add_attachment(f"a,b\n1,{inner}\n", subtype="csv" if name.endswith("csv") else "plain", filename=name)
        if not name.endswith("csv"):
            expected[0]["anywhere"] = True
        return [*expected, {"mark": inner[-5:], "optional": True}]
    document = io.BytesIO()
    papers.make_docx(document, [content.Block("heading", level=1, text=inner), content.Block("paragraph", text="End.")])
    message.add_attachment(document.getvalue(), maintype="application", subtype="octet-stream", filename="report.docx")
    return [{"text": "report.docx"}, {"text": inner}]


def make_eml(path, source, number):
    message, expected = make_message(source, number)
    data = message.as_bytes()
    if number % 6 == 5:  # as old programs write it
        data = data.replace(b"\r\n", b"\n")
    path.write_bytes(data)
    return {"blocks": expected}


def make_mbox(path, source, number):
    box = mailbox.mbox(path, create=True)
    expected = []
    count = source.random.randint(1, 5)
    for n in range(count):
        message, found = make_message(source, number + n)
        if n == 1:
            line = f"From here on {source.mark()}"
            message = EmailMessage(policy=email.policy.SMTP)
            message["From"], message["To"], message["Subject"] = "a@example.com", "b@example.com", f"Line {source.mark()}"
            message.set_content(f"Hello\n\n{line}\n")
            found = [{"text": message["subject"]}, {"text": line}]
        box.add(mailbox.mboxMessage(message))
        expected += found
    box.close()
    return {"blocks": expected, "parts": count}


NAMES = {"cp437": ["Größe/Tür.txt", "naïve.txt"], "shift_jis": ["資料/報告書.txt", "会議の議事録.txt"],
         "gbk": ["文件/报告说明.txt", "会议记录.txt"], "cp866": ["Документы/отчёт.txt", "Письмо другу.txt"],
         "cp1252": ["Übersicht/größe.txt", "façade.txt"], "utf-8": ["Grüße/漢字.txt", "🎉.txt"],
         "backslash": ["folder\\inner\\a.txt", "b.txt"], "big5": ["資料夾/報告.txt", "會議記錄.txt"],
         "ascii": ["a/b/c.txt", "d e.txt"], "euc_kr": ["문서/보고서.txt", "회의록.txt"]}


class Member(zipfile.ZipInfo):
    """A member whose name is in an encoding that the archive does not tell."""

    encoding = "utf-8"

    def _encodeFilenameFlags(self):
        is_told = 0x800 if self.encoding == "utf-8" else 0
        return self.filename.encode(self.encoding), self.flag_bits & ~0x800 | is_told


def make_zip(path, source, number):
    """Writes names in the encoding of a system, without saying which: as Windows and old programs do."""
    encoding = list(NAMES)[number % len(NAMES)]
    members = {}
    with zipfile.ZipFile(path, "w", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2][number % 3]) as pack:
        for name in NAMES[encoding]:
            said = f"{source.words()}\n{source.words()}\n"
            members[name.replace("\\", "/")] = said
            info = Member("x")
            info.compress_type = pack.compression
            info.filename = name
            info.encoding = "utf-8" if encoding == "backslash" else encoding
            pack.writestr(info, said)
    return {"members": members, "encoding": encoding}


def make_notebook(path, source, number):
    notebook = nbformat.v4.new_notebook()
    expected = []
    for n in range(source.random.randint(2, 6)):
        kind = (n + number) % 4
        if kind == 0:
            head, line = source.words(), source.words()
            notebook.cells.append(nbformat.v4.new_markdown_cell(f"# Part\n\n{head}\n\n{line}"))
            expected += [{"text": head}, {"text": line}]
            continue
        if kind == 1:
            raw = source.words()
            notebook.cells.append(nbformat.v4.new_raw_cell(raw))
            expected.append({"text": raw})
            continue
        line, out = f"x = {source.mark()!r} # {source.words()}", source.words()
        cell = nbformat.v4.new_code_cell(f"import os\n{line}")
        cell.execution_count = n
        if kind == 2:
            cell.outputs = [nbformat.v4.new_output("stream", name=["stdout", "stderr"][number % 2], text=f"{out}\n")]
        else:
            more = f"at line {source.words()}"
            cell.outputs = [nbformat.v4.new_output(
                "error", ename="ValueError", evalue=out,
                traceback=[f"\x1b[0;32m{more}\x1b[0m", f"\x1b[0;31mValueError\x1b[0m: {out}"])] if number % 3 == 0 else \
                [nbformat.v4.new_output("execute_result", {"text/plain": out, "image/png": "iVBORw0KGgo="})]
        notebook.cells.append(cell)
        expected += [{"text": line}]
        if kind == 3 and number % 3 == 0:
            expected += [{"text": more, "anywhere": True}, {"text": out}]
        else:
            expected += [{"text": out}]
    if number % 5 == 4:
        path.write_text(json.dumps(notebook, ensure_ascii=False, indent=None), "utf-8")
    else:
        nbformat.write(notebook, path)
    return {"blocks": expected, "parts": len(notebook.cells)}


def make_pptx(path, source, number):
    deck = pptx.Presentation()
    expected = []
    slides = source.random.randint(2, 5)
    for n in range(slides):
        title, lines = source.words(), [(level % 3, source.words()) for level in range(source.random.randint(1, 4))]
        slide = deck.slides.add_slide(deck.slide_layouts[1])
        slide.shapes.title.text = title
        frame = slide.placeholders[1].text_frame
        for position, (level, line) in enumerate(lines):
            paragraph = frame.paragraphs[0] if position == 0 else frame.add_paragraph()
            paragraph.text, paragraph.level = line, level
        expected += [{"text": title}, *({"text": line} for _, line in lines)]
        kind = (n + number) % 5
        if kind == 1:
            expected += [{"table": add_slide_table(slide, source, number)}]
        elif kind == 2:
            note = source.words()
            slide.notes_slide.notes_text_frame.text = note
            expected += [{"text": note}]
        elif kind == 3:
            box, inner = slide.shapes.add_group_shape(), source.words()
            box.shapes.add_textbox(Inches(1), Inches(6), Inches(3), Inches(1)).text_frame.text = inner
            expected += [{"text": inner}]
        elif kind == 4:
            first, second = source.words(), source.words()
            slide.shapes.add_textbox(Inches(1), Inches(6), Inches(3), Inches(1)).text_frame.text = f"{first}\v{second}"
            expected += [{"text": first}, {"text": second}]
    deck.save(path)
    return {"blocks": expected, "parts": slides}


def add_slide_table(slide, source, number):
    table = content.make_table(source, ["plain", "merged", "high", "two headers", "lines", "empty"][number % 6])
    grid = slide.shapes.add_table(len(table.rows), len(table.rows[0]), 0, Inches(6), 5_000_000, 500_000).table
    for r, row in enumerate(table.rows):
        for c, cell in enumerate(row):
            if cell is None:
                continue
            grid.cell(r, c).text = "\n".join(cell.lines)
            if cell.across > 1 or cell.down > 1:
                grid.cell(r, c).merge(grid.cell(r + cell.down - 1, c + cell.across - 1))
    return table.grid()


def make_odp(path, source, number):
    deck = opendocument.OpenDocumentPresentation()
    layout = style.PageLayout(name="layout")
    deck.automaticstyles.addElement(layout)
    master = style.MasterPage(name="master", pagelayoutname=layout)
    deck.masterstyles.addElement(master)
    expected = []
    slides = source.random.randint(2, 5)
    for n in range(slides):
        page = draw.Page(name=f"page{n + 1}", masterpagename=master)
        for kind in ("title", "outline"):
            frame = draw.Frame(width="10cm", height="2cm")
            frame.setAttrNS(PRESENTATIONNS, "class", kind)
            box = draw.TextBox()
            lines = [source.words() for _ in range(1 if kind == "title" else source.random.randint(1, 4))]
            if kind == "outline" and (n + number) % 2:
                box.addElement(papers.make_odf_list([(level % 3, line) for level, line in enumerate(lines)], 0))
            else:
                for line in lines:
                    box.addElement(odftext.P(text=line))
            frame.addElement(box)
            page.addElement(frame)
            expected += [{"text": line} for line in lines]
        if (n + number) % 3 == 1:
            table = content.make_table(source, content.TABLES[number % 7])
            frame = draw.Frame(width="10cm", height="5cm")
            frame.addElement(papers.make_odf_table(table, f"table{n}"))
            page.addElement(frame)
            expected.append({"table": table.grid()})
        if (n + number) % 3 == 2:
            note = source.words()
            notes = presentation.Notes()
            frame = draw.Frame(width="10cm", height="5cm")
            frame.setAttrNS(PRESENTATIONNS, "class", "notes")
            box = draw.TextBox()
            box.addElement(odftext.P(text=note))
            frame.addElement(box)
            notes.addElement(frame)
            page.addElement(notes)
            expected.append({"text": note})
        deck.presentation.addElement(page)
    deck.save(str(path))
    return {"blocks": expected, "parts": slides}
