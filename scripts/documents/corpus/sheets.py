"""Writes workbooks with the libraries that people use: xlsx, xls, ods and SpreadsheetML; and says what Excel shows."""

import datetime
import html

import openpyxl
import xlsxwriter
import xlwt
from odf import number as odfnumber
from odf import opendocument, style, table as odftable, text as odftext
from openpyxl.styles import Font

DAY = datetime.date(1899, 12, 30)


class Value:
    """A cell: its value, its number format, the text that Excel shows, and the value that rows have."""

    def __init__(self, value, shown, row, code="General", formula=None):
        self.value, self.shown, self.row, self.code, self.formula = value, shown, row, code, formula


class Sheet:
    def __init__(self, name, rows, hidden=False, hidden_row=None, hidden_column=None, merged=(), first=0):
        self.name, self.rows, self.hidden = name, rows, hidden
        self.hidden_row, self.hidden_column = hidden_row, hidden_column
        self.merged = merged  # (row, column, rows, columns)
        self.first = first  # the row of the header

    def grid(self):
        return [["" if cell is None else cell.shown for cell in row] for row in self.rows]

    def records(self):
        names = [cell.row for cell in self.rows[self.first]]
        return [{name: None if cell is None else cell.row for name, cell in zip(names, row)}
                for row in self.rows[self.first + 1:] if any(row)]


def text(words):
    return Value(words, words, words)


def whole(random):
    n = random.choice([0, 7, -42, 65536, 1234567, 2**31, 999999999999999, -123456789012345, 10**14 + 1])
    return Value(n, str(n), n)


def decimals(random):
    n = random.randint(-99999, 99999) / 64
    return Value(n, repr(n), n if n != int(n) else int(n)) if n != int(n) else Value(int(n), str(int(n)), int(n))


def money(random):
    cents = random.randint(0, 99999999)
    n = cents / 100
    row = n if cents % 100 else cents // 100
    code, shown = random.choice([("#,##0.00", f"{n:,.2f}"), ('"$"#,##0.00', f"${n:,.2f}"), ('#,##0.00 "€"', f"{n:,.2f} €"),
                                 ("#,##0", f"{(cents + 50) // 100:,}")])
    return Value(n, shown, row, code)


def percent(random):
    n = random.randint(1, 9999)
    return random.choice([Value(n / 10000, f"{n / 100:.2f}%", n / 10000, "0.00%"),
                          Value(n / 100, f"{n}%", n / 100 if n % 100 else n // 100, "0%")])


def date(random):
    day = datetime.date(1950, 1, 1) + datetime.timedelta(days=random.randint(0, 40000))
    code = random.choice(["yyyy-mm-dd", "dd/mm/yyyy", "m/d/yy", "d-mmm-yyyy", "[$-409]mmmm d, yyyy"])
    return Value(day, day.isoformat(), day.isoformat(), code)


def moment(random):
    at = datetime.datetime(2024, 1, 1) + datetime.timedelta(minutes=random.randint(1, 500000))
    at += datetime.timedelta(minutes=at.hour == at.minute == 0)
    return Value(at, at.strftime("%Y-%m-%d %H:%M:%S"), at.isoformat(), "yyyy-mm-dd hh:mm:ss")


def hours(random):
    minutes = random.randint(1, 1439)
    return Value(minutes / 1440, f"{minutes // 60}:{minutes % 60:02d}", f"{minutes // 60:02d}:{minutes % 60:02d}:00", "h:mm")


def passed(random):
    minutes = random.randint(1500, 9999)
    return Value(minutes / 1440, f"{minutes // 60}:{minutes % 60:02d}:00", f"{minutes // 60}:{minutes % 60:02d}:00",
                 "[h]:mm:ss")


def code(random):
    n = random.randint(1, 99999)
    other = random.randint(1, 999999999)
    digits = f"{other:09d}"
    return random.choice([Value(n, f"{n:05d}", n, "00000"),
                          Value(other, f"{digits[:3]}-{digits[3:5]}-{digits[5:]}", other, "000-00-0000")])


def truth(random):
    is_so = random.random() < 0.5
    return Value(is_so, str(is_so).upper(), is_so)


KINDS = [whole, decimals, money, percent, date, moment, hours, passed, code, truth]


def make_book(source, number, formulas=True):
    """Makes a workbook of one to three sheets. The number chooses what is special about it."""
    sheets = []
    for index in range(1 + number % 3):
        rows = make_rows(source, index + number)
        name = ["Sales", "Köpfe & mehr", "2024-03"][index]
        sheet = Sheet(name, rows)
        if index == 0:
            specialise(source, sheet, number)
        sheets.append(sheet)
    if len(sheets) > 1 and number % 4 == 1:
        sheets[-1].hidden = True
    if formulas and number % 2:
        add_sum(sheets[0])
    return sheets


def make_rows(source, number):
    """The first column has words, the others each their kind of value."""
    kinds = [KINDS[(number * 3 + n) % len(KINDS)] for n in range(source.random.randint(2, 5))]
    rows = [[text(f"{kind.__name__} {source.mark()}") for kind in [make_rows, *kinds]]]
    rows[0][0] = text(f"name {source.mark()}")
    for _ in range(source.random.randint(3, 9)):
        row = [text(source.words())]
        for kind in kinds:
            row.append(None if source.random.random() < 0.1 else kind(source.random))
        rows.append(row)
    for row in rows[1:]:
        if source.random.random() < 0.15:
            row[0] = text(f"{source.words()}\n{source.words()}")
        elif source.random.random() < 0.1:
            row[0] = text("007")
    return rows


def specialise(source, sheet, number):
    special = ["", "hidden row", "hidden column", "merged title", "merged cells", "gap", "no value"][number % 7]
    if special == "hidden row":
        sheet.hidden_row = 2
    elif special == "hidden column":
        sheet.hidden_column = 1
    elif special == "merged title":
        width = len(sheet.rows[0])
        sheet.rows.insert(0, [text(f"Title {source.mark()}")] + [None] * (width - 1))
        renumber(source, sheet)
        sheet.merged = [(0, 0, 1, width)]
        sheet.first = 1
    elif special == "merged cells":
        sheet.rows[1][0], sheet.rows[2][0] = text(sheet.rows[1][0].shown), None
        sheet.merged = [(1, 0, 2, 1)]
    elif special == "gap":
        sheet.rows.insert(3, [None] * len(sheet.rows[0]))


def renumber(source, sheet):
    for row in sheet.rows:
        for n, cell in enumerate(row):
            if cell is not None and isinstance(cell.value, str) and cell.value[-5:-4] == "w":
                row[n] = text("\n".join(line[:-5] + source.mark() for line in cell.value.split("\n")))


def add_sum(sheet):
    """Adds a row with the sums of the columns of whole numbers, as formulas with their values."""
    last = [text("sum")]
    for c in range(1, len(sheet.rows[0])):
        column = [row[c].value for row in sheet.rows[sheet.first + 1:] if row[c] is not None]
        if column and all(type(v) is int for v in column) and abs(sum(column)) < 10**15:
            letter = "ABCDEFGHIJ"[c]
            last.append(Value(sum(column), str(sum(column)), sum(column),
                              formula=f"SUM({letter}{sheet.first + 2}:{letter}{len(sheet.rows)})"))
        else:
            last.append(None)
    sheet.rows.append(last)


def make_openpyxl(path, sheets):
    book = openpyxl.Workbook()
    book.remove(book.active)
    for sheet in sheets:
        target = book.create_sheet(sheet.name)
        target.sheet_state = "hidden" if sheet.hidden else "visible"
        for r, row in enumerate(sheet.rows, 1):
            for c, cell in enumerate(row, 1):
                if cell is None:
                    continue
                place = target.cell(r, c, f"={cell.formula}" if cell.formula else cell.value)
                if cell.code != "General":
                    place.number_format = cell.code
                if r == 1:
                    place.font = Font(bold=True)
        for r, c, down, across in sheet.merged:
            target.merge_cells(start_row=r + 1, start_column=c + 1, end_row=r + down, end_column=c + across)
        if sheet.hidden_row is not None:
            target.row_dimensions[sheet.hidden_row + 1].hidden = True
        if sheet.hidden_column is not None:
            target.column_dimensions["ABC"[sheet.hidden_column]].hidden = True
    book.save(path)


def make_xlsxwriter(path, sheets, number):
    book = xlsxwriter.Workbook(str(path), {"date_1904": number % 5 == 4, "constant_memory": False})
    formats = {}
    for sheet in sheets:
        target = book.add_worksheet(sheet.name)
        if sheet.hidden:
            target.hide()
        for r, c, down, across in sheet.merged:
            target.merge_range(r, c, r + down - 1, c + across - 1, "")
        for r, row in enumerate(sheet.rows):
            for c, cell in enumerate(row):
                if cell is None:
                    continue
                style_of = formats.setdefault(cell.code, book.add_format({"num_format": cell.code}))
                if cell.formula:
                    target.write_formula(r, c, f"={cell.formula}", style_of, cell.value)
                elif isinstance(cell.value, (datetime.date, datetime.datetime)):
                    target.write_datetime(r, c, cell.value, style_of)
                elif isinstance(cell.value, str):
                    target.write_string(r, c, cell.value)
                else:
                    target.write(r, c, cell.value, style_of)
        if sheet.hidden_row is not None:
            target.set_row(sheet.hidden_row, None, None, {"hidden": True})
        if sheet.hidden_column is not None:
            target.set_column(sheet.hidden_column, sheet.hidden_column, None, None, {"hidden": True})
    book.close()


def make_xls(path, sheets):
    book = xlwt.Workbook()
    styles = {}
    for sheet in sheets:
        target = book.add_sheet(sheet.name)
        target.visibility = int(sheet.hidden)
        covered = {(r, c): (down, across) for r, c, down, across in sheet.merged}
        for r, row in enumerate(sheet.rows):
            for c, cell in enumerate(row):
                if cell is None:
                    continue
                if cell.code not in styles:
                    styles[cell.code] = xlwt.easyxf(num_format_str=cell.code)
                if (r, c) in covered:
                    down, across = covered[r, c]
                    target.write_merge(r, r + down - 1, c, c + across - 1, cell.value, styles[cell.code])
                else:
                    target.write(r, c, cell.value, styles[cell.code])
        if sheet.hidden_row is not None:
            target.row(sheet.hidden_row).hidden = True
        if sheet.hidden_column is not None:
            target.col(sheet.hidden_column).hidden = True
    book.save(str(path))


def make_ods(path, sheets):
    """Writes values as LibreOffice does: each with its type, and the text that is shown."""
    book = opendocument.OpenDocumentSpreadsheet()
    gone = style.Style(name="gone", family="table")
    gone.addElement(style.TableProperties(display="false"))
    book.automaticstyles.addElement(gone)
    for name, kind in (("plainnumber", odfnumber.NumberStyle), ("plainpercent", odfnumber.PercentageStyle)):
        made = kind(name=name)
        made.addElement(odfnumber.Number(decimalplaces=2, minintegerdigits=1))
        book.automaticstyles.addElement(made)
    for sheet in sheets:
        grid = odftable.Table(name=sheet.name, **({"stylename": gone} if sheet.hidden else {}))
        for c in range(len(sheet.rows[0])):
            hidden = {"visibility": "collapse"} if c == sheet.hidden_column else {}
            grid.addElement(odftable.TableColumn(**hidden))
        spans = {(r, c): (down, across) for r, c, down, across in sheet.merged}
        covered = {(r + i, c + j) for r, c, down, across in sheet.merged for i in range(down) for j in range(across)}
        for r, row in enumerate(sheet.rows):
            line = odftable.TableRow(**({"visibility": "collapse"} if r == sheet.hidden_row else {}))
            for c, cell in enumerate(row):
                if (r, c) in covered and (r, c) not in spans:
                    line.addElement(odftable.CoveredTableCell())
                else:
                    line.addElement(make_ods_cell(cell, spans.get((r, c))))
            grid.addElement(line)
        book.spreadsheet.addElement(grid)
    book.save(str(path))


def make_ods_cell(cell, span):
    has = {"numberrowsspanned": span[0], "numbercolumnsspanned": span[1]} if span else {}
    if cell is None:
        return odftable.TableCell(**has)
    value = cell.value
    if cell.formula:
        has["formula"] = f"of:={cell.formula.replace('(', '([.').replace(':', ':.').replace(')', '])')}"
    if isinstance(value, bool):
        has |= {"valuetype": "boolean", "booleanvalue": str(value).lower()}
    elif isinstance(value, datetime.datetime):
        has |= {"valuetype": "date", "datevalue": value.isoformat()}
    elif isinstance(value, datetime.date):
        has |= {"valuetype": "date", "datevalue": value.isoformat()}
    elif cell.code in ("h:mm", "[h]:mm:ss"):
        minutes = round(value * 1440)
        has |= {"valuetype": "time", "timevalue": f"PT{minutes // 60:02d}H{minutes % 60:02d}M00S"}
    elif "%" in cell.code:
        has |= {"valuetype": "percentage", "value": repr(value)}
    elif "$" in cell.code or "€" in cell.code:
        has |= {"valuetype": "currency", "value": repr(value), "currency": "USD" if "$" in cell.code else "EUR"}
    elif isinstance(value, (int, float)):
        has |= {"valuetype": "float", "value": repr(value)}
    else:
        has |= {"valuetype": "string"}
    made = odftable.TableCell(**has)
    for line in cell.shown.split("\n"):
        made.addElement(odftext.P(text=line))
    return made


def make_spreadsheetml(path, sheets):
    """Writes XML of Excel 2003, as reporting programs do."""
    codes = sorted({cell.code for sheet in sheets for row in sheet.rows for cell in row if cell})
    styles = "".join(f'<Style ss:ID="s{n}"><NumberFormat ss:Format="{html.escape(code)}"/></Style>'
                     for n, code in enumerate(codes))
    out = ['<?xml version="1.0"?>\n<?mso-application progid="Excel.Sheet"?>\n'
           '<Workbook xmlns="urn:schemas-microsoft-com:office:spreadsheet" '
           'xmlns:ss="urn:schemas-microsoft-com:office:spreadsheet" xmlns:x="urn:schemas-microsoft-com:office:excel">'
           f"<Styles>{styles}</Styles>"]
    for sheet in sheets:
        spans = {(r, c): (down, across) for r, c, down, across in sheet.merged}
        out.append(f'<Worksheet ss:Name="{html.escape(sheet.name)}"><Table>')
        before = -1
        for r, row in enumerate(sheet.rows):
            if not any(row):
                continue
            index = f' ss:Index="{r + 1}"' * (r != before + 1)
            before = r
            out.append(f"<Row{index}>" + write_xml_cells(row, r, spans, codes) + "</Row>")
        hidden = "<Visible>SheetHidden</Visible>" * sheet.hidden
        out.append('</Table><WorksheetOptions xmlns="urn:schemas-microsoft-com:office:excel">'
                   f"{hidden}</WorksheetOptions></Worksheet>\n")
    path.write_text("".join(out) + "</Workbook>", "utf-8")


def write_xml_cells(row, r, spans, codes):
    out, position = [], 0
    for c, cell in enumerate(row):
        if cell is None:
            continue
        down, across = spans.get((r, c), (1, 1))
        marks = f' ss:Index="{c + 1}"' * (c != position) + f' ss:MergeAcross="{across - 1}"' * (across > 1) \
            + f' ss:MergeDown="{down - 1}"' * (down > 1)
        position = c + across
        value, kind = cell.value, "Number"
        if isinstance(value, bool):
            kind, value = "Boolean", int(value)
        elif isinstance(value, datetime.datetime):
            kind, value = "DateTime", value.strftime("%Y-%m-%dT%H:%M:%S.000")
        elif isinstance(value, datetime.date):
            kind, value = "DateTime", f"{value.isoformat()}T00:00:00.000"
        elif isinstance(value, str):
            kind, value = "String", html.escape(value).replace("\n", "&#10;")
        out.append(f'<Cell ss:StyleID="s{codes.index(cell.code)}"{marks}><Data ss:Type="{kind}">{value}</Data></Cell>')
    return "".join(out)


def export(sheet):
    """Returns a sheet for xlsb.js: dates are the numbers that Excel keeps."""
    def convert(cell):
        value = cell.value
        if isinstance(value, datetime.datetime):
            value = (value - datetime.datetime(1899, 12, 30)) / datetime.timedelta(days=1)
        elif isinstance(value, datetime.date):
            value = (value - DAY).days
        return {"v": value, "z": cell.code, "f": cell.formula}

    return {"name": sheet.name, "hidden": sheet.hidden, "hiddenRow": sheet.hidden_row, "hiddenColumn": sheet.hidden_column,
            "merged": sheet.merged, "rows": [[cell and convert(cell) for cell in row] for row in sheet.rows]}
