def _show(rows):
    """Print rows as a table with aligned columns."""
    if not rows:
        return print("no rows")
    texts = [["NULL" if value is None else " ".join(str(value).splitlines()) for value in row.values()]
             for row in rows]
    isright = [all(isinstance(row[name], (int, float, type(None))) for row in rows) for name in rows[0]]
    widths = [max(map(len, column)) for column in zip(rows[0], *texts)]
    for line in [list(rows[0]), ["-" * width for width in widths], *texts]:
        cells = [text.rjust(width) if right else text.ljust(width)
                 for text, width, right in zip(line, widths, isright)]
        print("  ".join(cells).rstrip())


def _query(text):
    """Return the rows of a query."""
    try:
        ask = sql
    except NameError:
        raise LookupError(_explain()) from None
    return ask(text)


def _explain():
    """Return why no context is a table, and what to do."""
    advice = "pass CSV, JSON Lines, Parquet, Arrow, SQLite or a spreadsheet with --context"
    if "context" not in globals():
        return f"there is no context to query: {advice}"

    reasons = []
    for number in range(5):
        name = f"context_{number}" if number else "context"
        if name not in globals():
            break
        value = globals()[name]
        shown = getattr(value, "name", name)
        if not isinstance(shown, str):
            shown = name
        kind = getattr(value, "type", None)
        if kind == "json" or isinstance(value, (list, dict)):
            reason = "is one JSON value: write one object per line into a file .jsonl"
        elif isinstance(kind, str):
            reason = f"is of type {kind}: if it is CSV, name it .csv"
        elif hasattr(value, "keys"):
            reason = (f"is a collection of files ({len(value)}): SQL knows those of a folder on this machine with up to 64 files "
                      "whose names end like .csv, and none in an archive; pass each file as a separate context")
        else:
            continue
        reasons.append(f"{shown} {reason}")
    return "; ".join(["no context is a table", *reasons, advice])


try:
    SHOW(_query(QUERY))
finally:
    del _show, _query, _explain
