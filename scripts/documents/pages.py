"""Makes a PDF of many pages, and times how long pypdf takes for their text.

usage: pages.py make FILE PAGES | read FILE
"""

import json
import sys
import time

from pypdf import PdfReader
from reportlab.pdfgen import canvas


def make(name, pages):
    page = canvas.Canvas(name)
    for number in range(int(pages)):
        for line in range(45):
            page.drawString(50, 800 - 16 * line, f"Page {number} line {line}: the quick brown fox, invoice "
                            f"INV-{number:03d}{line:02d} total {line * 13.5:.2f} EUR")
        page.showPage()
    page.save()


def read(name):
    begun = time.perf_counter()
    text = "\n".join(page.extract_text() for page in PdfReader(name).pages)
    print(json.dumps({"seconds": time.perf_counter() - begun, "text": text}))


{"make": make, "read": read}[sys.argv[1]](*sys.argv[2:])
