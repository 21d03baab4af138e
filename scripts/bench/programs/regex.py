import re

line = "lorem ipsum dolor sit amet 12345 user@example.com consectetur 2024-01-02 adipiscing elit; "
text = line * 20000
pattern = re.compile(r"[\w.]+@[\w.]+")


def run():
    assert len(pattern.findall(text)) == 20000
