# Notes follow the message, each on its own lines.
try:
    raise ValueError("bad row")
except ValueError as e:
    e.add_note("while reading line 7")
    e.add_note("hint: two\nlines of it")
    raise
