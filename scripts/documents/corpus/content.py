"""Random content of which all is known: texts with numbered marks, documents, and what a reader must find in them."""

import random

FLAVOURS = [
    "Invoice of March", "Grüße aus Zürich", "naïve café", "漢字とかな", "Привет мир", "αβγδ", "مرحبا بالعالم", "שלום עולם",
    "party 🎉 time", "family 👩‍👩‍👧", "Donaudampfschifffahrtsgesellschaftskapitänsmütze", "a | b", "x < y & z > 0",
    "C:\\temp\\new", "*not bold* and _nor_ this", "100 % [sic]", "`code`", "price $5.00", "5 * 3 = 15", "~tilde~",
    "quoted \"words\"", "it's", "e-mail@example.com", "“curly” – dash…", "½ of 1/250", "１２３", "Ünïcödé", "中文字符测试",
]
EUROPEAN = [text for text in FLAVOURS if all(ord(c) < 0x100 and c not in "`~" for c in text)]
BASIC = [text for text in EUROPEAN if text.isascii()]  # what every font of PDF can show

NUMBERS = ["17", "-4", "1,234.50", "12 %", "2024-03-15", "3.14159", "007", "€ 9.99", "(250)", "1e5", "1/3", "+5", ".5"]


class Source:
    """Gives random content for one file. Every text has a mark such as w0012, which occurs once in the file."""

    def __init__(self, seed, flavours=None):
        self.random = random.Random(seed)
        self.flavours = flavours or FLAVOURS
        self.count = 0

    def mark(self):
        self.count += 1
        return f"w{self.count:04d}"

    def words(self):
        return f"{self.random.choice(self.flavours)} {self.mark()}"

    def sentence(self):
        return " ".join(f"{self.random.choice(self.flavours)} {self.mark()}" for _ in range(self.random.randint(2, 5)))

    def cell(self):
        if self.random.random() < 0.4:
            return self.random.choice(NUMBERS)
        return self.words()


class Cell:
    """A cell of a table. across and down are more than 1 if it is merged. inner is a table within it."""

    def __init__(self, lines, across=1, down=1, inner=None):
        self.lines, self.across, self.down, self.inner = lines, across, down, inner

    def plain(self):
        text = " ".join(self.lines)
        if self.inner:
            text += " " + " ".join(" | ".join(row) for row in self.inner)
        return text.strip()


class Table:
    """rows has None where a merged cell covers a place."""

    def __init__(self, rows, headers=1, stub=False):
        self.rows, self.headers, self.stub = rows, headers, stub

    def grid(self):
        return [["" if cell is None else cell.plain() for cell in row] for row in self.rows]


TABLES = ["plain", "merged", "high", "two headers", "row headers", "lines", "empty", "nested", "wide"]


def make_table(source, kind, empties=True):
    width, height = source.random.randint(2, 5), source.random.randint(3, 7)
    if kind == "wide":
        width = 12
    if kind in ("merged", "two headers"):
        width = max(width, 3)
    rows = [[Cell([source.words()]) for _ in range(width)]]
    rows += [[Cell([source.cell()]) for _ in range(width)] for _ in range(height)]
    headers = 1
    if kind == "merged":
        rows[2][1] = Cell([source.words()], across=2)
        rows[2][2] = None
    elif kind == "high":
        rows[1][0] = Cell([source.words()], down=2)
        rows[2][0] = None
    elif kind == "two headers":
        rows[0] = [Cell([source.words()], down=2), Cell([source.words()], across=width - 1)] + [None] * (width - 2)
        rows[1] = [None] + [Cell([source.words()]) for _ in range(width - 1)]
        headers = 2
    elif kind == "lines":
        for row in rows[1:]:
            row[-1] = Cell([source.words() for _ in range(source.random.randint(2, 3))])
    elif kind == "empty" and empties:
        for row in rows[1:]:
            row[source.random.randrange(1, width)] = Cell([""])
        rows[-1][-1] = Cell([""])
    elif kind == "nested":
        rows[1][1] = Cell([source.words()], inner=[["nut", source.mark()], ["nail", source.mark()]])
    return Table(renumber(source, rows), headers, stub=kind == "row headers")


def renumber(source, rows):
    """Gives texts new marks in the order in which they are read."""
    for row in rows:
        for cell in row:
            if cell is None:
                continue
            cell.lines = [line[:-5] + source.mark() if line[-5:-4] == "w" else line for line in cell.lines]
            if cell.inner:
                cell.inner = [[row[0], source.mark()] for row in cell.inner]
    return rows


class Block:
    """kind is heading, paragraph, bold, link, broken, note, list or table."""

    def __init__(self, kind, **has):
        self.kind = kind
        self.__dict__.update(has)


def make_document(source, number, nested=True, links=True, notes=True, paper=False):
    """Makes a document of blocks, with each kind of table in turn. On paper, a row must fit into a line."""
    blocks = [Block("heading", level=1, text=source.words())]
    kinds = ["paragraph", "bold", "broken", "list", "table", "heading"] + ["link"] * links + ["note"] * notes
    chosen = [source.random.choice(kinds) for _ in range(source.random.randint(4, 9))] + ["table", "paragraph"]
    for kind in chosen:
        if kind == "heading":
            blocks.append(Block(kind, level=source.random.randint(2, 3), text=source.words()))
        elif kind == "list":
            items = [(0, source.words())]
            for _ in range(source.random.randint(1, 4)):
                items.append((source.random.randint(0, min(2, items[-1][0] + 1)), source.words()))
            blocks.append(Block(kind, ordered=source.random.random() < 0.5, items=items))
        elif kind == "table":
            which = TABLES[(number + len(blocks)) % len(TABLES)]
            if which == "nested" and not nested or which in ("nested", "lines", "wide") and paper:
                which = "plain"
            blocks.append(Block(kind, table=make_table(source, which)))
        elif kind == "link":
            blocks.append(Block(kind, text=source.words(), label=source.words(),
                                address=f"https://example.com/{source.random.randint(1, 999)}?a=1&b=2"))
        elif kind == "broken":
            blocks.append(Block(kind, lines=[source.words(), source.words()]))
        elif kind == "note":
            blocks.append(Block(kind, text=source.words(), note=source.words()))
        else:
            blocks.append(Block(kind, text=source.sentence()))
    return blocks


def expect(blocks):
    """Returns what a reader must find, in this order."""
    found = []
    for block in blocks:
        if block.kind == "table":
            found.append({"table": block.table.grid()})
        elif block.kind == "list":
            found += [{"text": text} for _, text in block.items]
        elif block.kind == "broken":
            found += [{"text": line} for line in block.lines]
        elif block.kind == "link":
            found.append({"text": f"{block.text} {block.label}", "address": block.address})
        elif block.kind == "note":
            found += [{"text": block.text}, {"text": block.note, "anywhere": True}]
        else:
            found.append({"text": block.text})
    return found
