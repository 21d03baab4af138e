"""Writes documents as Word, LibreOffice and browsers do: docx, odt, rtf, HTML and EPUB."""

import html
import re
import zipfile

import docx
from docx.oxml.ns import qn
from docx.oxml import OxmlElement
from docx.opc.constants import RELATIONSHIP_TYPE
from ebooklib import epub
from odf import opendocument, style, table as odftable, text as odftext

WORDS = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def make_docx(path, blocks):
    document = docx.Document()
    notes = []
    for block in blocks:
        add_to_docx(document, block, notes)
    document.save(path)
    if notes:
        add_footnotes(path, notes)


def add_to_docx(document, block, notes):
    if block.kind == "heading":
        document.add_heading(block.text, block.level)
    elif block.kind == "list":
        for level, text in block.items:
            name = "List Number" if block.ordered else "List Bullet"
            document.add_paragraph(text, style=name if level == 0 else f"{name} {level + 1}")
    elif block.kind == "table":
        fill_docx_table(document, block.table)
    elif block.kind == "broken":
        run = document.add_paragraph().add_run(block.lines[0])
        run.add_break()
        run.add_text(block.lines[1])
    elif block.kind == "link":
        paragraph = document.add_paragraph(block.text + " ")
        link = OxmlElement("w:hyperlink")
        link.set(qn("r:id"), document.part.relate_to(block.address, RELATIONSHIP_TYPE.HYPERLINK, is_external=True))
        run = paragraph.add_run(block.label)
        link.append(run._r)
        paragraph._p.append(link)
    elif block.kind == "note":
        run = document.add_paragraph(block.text).add_run()
        mark = OxmlElement("w:footnoteReference")
        notes.append(block.note)
        mark.set(qn("w:id"), str(len(notes) + 1))
        run._r.append(mark)
    else:
        words = block.text.split(" ")
        paragraph = document.add_paragraph()
        for number, word in enumerate(words):  # Word splits texts into runs at any place
            run = paragraph.add_run(word + " " * (number < len(words) - 1))
            run.bold = block.kind == "bold" and number < 2


def fill_docx_table(where, table):
    grid = where.add_table(len(table.rows), len(table.rows[0]))
    for r, row in enumerate(table.rows):
        for c, cell in enumerate(row):
            if cell is None:
                continue
            target = grid.cell(r, c)
            if cell.across > 1 or cell.down > 1:
                target = target.merge(grid.cell(r + cell.down - 1, c + cell.across - 1))
            target.text = cell.lines[0]
            for line in cell.lines[1:]:
                target.add_paragraph(line)
            if cell.inner:
                inner = target.add_table(len(cell.inner), len(cell.inner[0]))
                for i, inner_row in enumerate(cell.inner):
                    for j, text in enumerate(inner_row):
                        inner.cell(i, j).text = text
                target.add_paragraph()


def add_footnotes(path, notes):
    """Adds the part of footnotes, which python-docx does not write."""
    with zipfile.ZipFile(path) as pack:
        members = {name: pack.read(name) for name in pack.namelist()}
    body = "".join(f'<w:footnote w:id="{n}"><w:p><w:r><w:footnoteRef/></w:r><w:r><w:t xml:space="preserve"> '
                   f'{html.escape(note)}</w:t></w:r></w:p></w:footnote>' for n, note in enumerate(notes, 2))
    apart = "".join(f'<w:footnote w:type="{kind}" w:id="{n}"><w:p><w:r><w:{kind}/></w:r></w:p></w:footnote>'
                    for n, kind in enumerate(("separator", "continuationSeparator")))
    members["word/footnotes.xml"] = (f'<?xml version="1.0" encoding="UTF-8" standalone="yes"?>'
                                     f'<w:footnotes xmlns:w="{WORDS}">{apart}{body}</w:footnotes>').encode()
    kind = "application/vnd.openxmlformats-officedocument.wordprocessingml.footnotes+xml"
    insert(members, "[Content_Types].xml", "</Types>",
           f'<Override PartName="/word/footnotes.xml" ContentType="{kind}"/>')
    insert(members, "word/_rels/document.xml.rels", "</Relationships>",
           f'<Relationship Id="rIdNotes" Type="{OFFICE}/footnotes" Target="footnotes.xml"/>')
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as pack:
        for name, content in members.items():
            pack.writestr(name, content)


def insert(members, name, before, what):
    members[name] = members[name].decode().replace(before, what + before).encode()


def make_odt(path, blocks):
    document = opendocument.OpenDocumentText()
    bold = style.Style(name="Bold", family="text")
    bold.addElement(style.TextProperties(fontweight="bold"))
    document.automaticstyles.addElement(bold)
    for number, block in enumerate(blocks):
        document.text.addElement(make_odf_block(document, block, bold, number))
    document.save(path)


def make_odf_block(document, block, bold, number):
    if block.kind == "heading":
        return odftext.H(outlinelevel=block.level, text=block.text)
    if block.kind == "list":
        return make_odf_list(block.items, 0)
    if block.kind == "table":
        return make_odf_table(block.table, f"Table{number}")
    paragraph = odftext.P()
    if block.kind == "broken":
        paragraph.addText(block.lines[0])
        paragraph.addElement(odftext.LineBreak())
        paragraph.addText(block.lines[1])
    elif block.kind == "link":
        paragraph.addText(block.text + " ")
        paragraph.addElement(odftext.A(href=block.address, text=block.label))
    elif block.kind == "note":
        paragraph.addText(block.text)
        note = odftext.Note(noteclass="footnote", id=f"ftn{number}")
        note.addElement(odftext.NoteCitation(text="1"))
        body = odftext.NoteBody()
        body.addElement(odftext.P(text=block.note))
        note.addElement(body)
        paragraph.addElement(note)
    else:
        first, _, rest = block.text.partition(" ")
        paragraph.addElement(odftext.Span(stylename=bold if block.kind == "bold" else None, text=first))
        paragraph.addText(" " + rest)
    return paragraph


def make_odf_list(items, level):
    found = odftext.List()
    position = 0
    while position < len(items):
        item = odftext.ListItem()
        item.addElement(odftext.P(text=items[position][1]))
        position += 1
        end = position
        while end < len(items) and items[end][0] > level:
            end += 1
        if end > position:
            item.addElement(make_odf_list(items[position:end], level + 1))
        found.addElement(item)
        position = end
    return found


def make_odf_table(table, name):
    grid = odftable.Table(name=name)
    grid.addElement(odftable.TableColumn(numbercolumnsrepeated=len(table.rows[0])))
    heads = odftable.TableHeaderRows()
    for r, row in enumerate(table.rows):
        line = odftable.TableRow()
        for cell in row:
            if cell is None:
                line.addElement(odftable.CoveredTableCell())
                continue
            target = odftable.TableCell(valuetype="string", numbercolumnsspanned=cell.across, numberrowsspanned=cell.down)
            for text in cell.lines:
                target.addElement(odftext.P(text=text))
            if cell.inner:
                inner = odftable.Table(name=f"{name}inner")
                inner.addElement(odftable.TableColumn(numbercolumnsrepeated=2))
                for inner_row in cell.inner:
                    inner_line = odftable.TableRow()
                    for text in inner_row:
                        inner_cell = odftable.TableCell(valuetype="string")
                        inner_cell.addElement(odftext.P(text=text))
                        inner_line.addElement(inner_cell)
                    inner.addElement(inner_line)
                target.addElement(inner)
            line.addElement(target)
        (heads if r < table.headers else grid).addElement(line)
        if r == table.headers - 1:
            grid.addElement(heads)
    return grid


def escape_rtf(text, number=0):
    """Writes other letters as Word does: in UTF-16 with a question mark for old readers, or in code page 1252."""
    out = []
    for char in text:
        if char in "\\{}":
            out.append("\\" + char)
        elif ord(char) < 128:
            out.append(char)
        elif number % 2 and 0xa0 <= ord(char) < 0x100:
            out.append(f"\\'{ord(char):02x}")
        else:
            units = char.encode("utf-16-le")
            for i in range(0, len(units), 2):
                value = int.from_bytes(units[i:i + 2], "little", signed=True)
                out.append(f"\\u{value}?" if number % 3 else f"\\uc1\\u{value} \\'3f")
    return "".join(out)


def make_rtf(path, blocks, number):
    out = ["{\\rtf1\\adeflang1025\\ansi\\ansicpg1252\\uc1\\deff0{\\fonttbl{\\f0\\froman\\fcharset0\\fprq2{\\*\\panose "
           "02020603050405020304}Times New Roman;}}{\\colortbl;\\red0\\green0\\blue0;}{\\stylesheet{\\ql \\fs22 Normal;}"
           "{\\s1\\ql\\outlinelevel0\\b\\fs32 heading 1;}{\\s2\\ql\\outlinelevel1\\b\\fs26 heading 2;}"
           "{\\s3\\ql\\outlinelevel2\\b\\fs24 heading 3;}}{\\*\\generator Riched20 10.0;}{\\info{\\author Nobody}"
           "{\\title Hidden title}}\\viewkind4\r\n"]
    for block in blocks:
        out.append(write_rtf_block(block, number) + "\r\n")
    path.write_bytes("".join(out + ["}"]).encode("ascii"))


def write_rtf_block(block, number):
    def escape(text):
        return escape_rtf(text, number)

    if block.kind == "heading":
        return f"\\pard\\plain \\s{block.level}\\ql\\outlinelevel{block.level - 1}\\b\\fs32 {escape(block.text)}\\par"
    if block.kind == "list":
        return "".join(f"{{\\listtext\\pard\\plain\\f3\\'b7\\tab}}\\pard\\plain\\fi-360\\li{720 * (level + 1)}\\ls1\\ilvl"
                       f"{level} {escape(text)}\\par\r\n" for level, text in block.items)
    if block.kind == "table":
        return write_rtf_table(block.table, escape)
    if block.kind == "broken":
        return f"\\pard\\plain {escape(block.lines[0])}\\line {escape(block.lines[1])}\\par"
    if block.kind == "link":
        return (f"\\pard\\plain {escape(block.text)} {{\\field{{\\*\\fldinst HYPERLINK \"{block.address}\" }}"
                f"{{\\fldrslt {{\\ul\\cf1 {escape(block.label)}}}}}}}\\par")
    if block.kind == "note":
        return (f"\\pard\\plain {escape(block.text)}{{\\super\\chftn {{\\footnote \\pard\\plain {{\\super\\chftn }} "
                f"{escape(block.note)}}}}}\\par")
    if block.kind == "bold":
        first, _, rest = block.text.partition(" ")
        return f"\\pard\\plain {{\\b {escape(first)}}} {escape(rest)}\\par"
    return f"\\pard\\plain {escape(block.text)}\\par"


def write_rtf_table(table, escape):
    out = []
    for r, row in enumerate(table.rows):
        edges, texts = [], []
        for c, cell in enumerate(row):
            marks = ""
            if cell is None:
                left = next((k for k in range(c, -1, -1) if row[k] is not None), None)
                if left is not None and row[left].across > c - left:
                    marks = "\\clmrg"
                else:
                    marks = "\\clvmrg"
                    if any(above[c] is None and r > 0 for above in table.rows[:r]):
                        marks = "\\clvmrg"
            else:
                marks = "\\clmgf" * (cell.across > 1) + "\\clvmgf" * (cell.down > 1)
            edges.append(f"{marks}\\clbrdrt\\brdrs\\cellx{1500 * (c + 1)}")
            texts.append(("" if cell is None else "\\par ".join(escape(x) for x in cell.lines)) + "\\cell ")
        head = "\\trhdr" * (r < table.headers)
        out.append(f"\\trowd\\trgaph108{head}{''.join(edges)}\\pard\\plain\\intbl {''.join(texts)}"
                   f"{{\\trowd\\trgaph108{head}{''.join(edges)}\\row }}\r\n")
    return "".join(out) + "\\pard\\plain\\par"


def write_html(blocks, number):
    """Writes the body of a page. The number chooses among ways in which people write pages."""
    notes, out = [], []
    for block in blocks:
        out.append(write_html_block(block, notes, number))
    if notes:
        out.append('<ol class="notes">' + "".join(f"<li>{html.escape(note)}</li>" for note in notes) + "</ol>")
    return "\n".join(out)


def write_html_block(block, notes, number):
    escape = html.escape
    if block.kind == "heading":
        return f"<h{block.level}>{escape(block.text)}</h{block.level}>"
    if block.kind == "list":
        return write_html_list(block.items, "ol" if block.ordered else "ul", 0)
    if block.kind == "table":
        return write_html_table(block.table, number)
    if block.kind == "broken":
        return f"<p>{escape(block.lines[0])}<br>{escape(block.lines[1])}</p>"
    if block.kind == "link":
        return f'<p>{escape(block.text)} <a href="{escape(block.address)}">{escape(block.label)}</a></p>'
    if block.kind == "note":
        notes.append(block.note)
        return f"<p>{escape(block.text)}</p>"
    if block.kind == "bold":
        first, _, rest = block.text.partition(" ")
        return f"<p><b>{escape(first)}</b> {escape(rest)}</p>"
    return f"<div>{escape(block.text)}</div>" if number % 2 else f"<p>{escape(block.text)}</p>"


def write_html_list(items, tag, level):
    out, position = [], 0
    while position < len(items):
        text = html.escape(items[position][1])
        end = position + 1
        while end < len(items) and items[end][0] > level:
            end += 1
        inner = write_html_list(items[position + 1:end], tag, level + 1) if end > position + 1 else ""
        out.append(f"<li>{text}{inner}</li>")
        position = end
    return f"<{tag}>{''.join(out)}</{tag}>"


def write_html_table(table, number):
    out = []
    for r, row in enumerate(table.rows):
        cells = []
        for c, cell in enumerate(row):
            if cell is None:
                continue
            tag = "th" if (r < table.headers and number % 3) or (table.stub and c == 0) else "td"
            marks = f' colspan="{cell.across}"' * (cell.across > 1) + f' rowspan="{cell.down}"' * (cell.down > 1)
            text = "<br>".join(html.escape(line) for line in cell.lines)
            if cell.inner:
                text += "<table>" + "".join("<tr>" + "".join(f"<td>{html.escape(t)}</td>" for t in inner) + "</tr>"
                                            for inner in cell.inner) + "</table>"
            cells.append(f"<{tag}{marks}>{text}</{tag}>")
        out.append(f"<tr>{''.join(cells)}</tr>")
    if number % 2 and number % 3:
        head, body = "".join(out[:table.headers]), "".join(out[table.headers:])
        return f'<table class="data"><thead>{head}</thead><tbody>{body}</tbody></table>'
    return f"<table>{''.join(out)}</table>"


def make_html(path, blocks, number):
    encoding = ["utf-8", "utf-8", "utf-16", "windows-1252", "utf-8"][number % 5]
    hidden = ["<script>var w9999 = 1;</script><style>p { color: red }</style>", "<!-- w9999 -->", "",
              '<p style="display:none">w9999</p>', "<template><p>w9999</p></template>", "<div hidden>w9999</div>"]
    meta = f'<meta charset="{encoding}">' if number % 2 else \
        f'<meta http-equiv="Content-Type" content="text/html; charset={encoding}">'
    page = (f"<!DOCTYPE html>\n<html><head>{meta}<title>Page</title></head><body>\n{hidden[number % 6]}\n"
            f"{write_html(blocks, number)}\n</body></html>\n")
    if number % 7 == 0:
        page = re.sub(r'="(\d+)"', r"=\1", page)
    if number % 4 == 2:
        page = re.sub(r"</(p|li|td|th|tr)>", "", page)
    path.write_bytes(page.encode(encoding, "xmlcharrefreplace"))


def make_epub(path, chapters):
    book = epub.EpubBook()
    book.set_identifier("corpus")
    book.set_title("A book")
    book.set_language("en")
    spine = []
    for number, blocks in enumerate(chapters):
        chapter = epub.EpubHtml(title=f"Part {number + 1}", file_name=f"c {number}.xhtml", lang="en")
        chapter.content = write_html(blocks, number).replace("<br>", "<br/>")
        book.add_item(chapter)
        spine.append(chapter)
    book.spine = ["nav"] * (len(chapters) % 2) + spine
    book.toc = spine
    book.add_item(epub.EpubNcx())
    book.add_item(epub.EpubNav())
    epub.write_epub(str(path), book)
