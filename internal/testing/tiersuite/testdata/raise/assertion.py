# A failing assertion with a message over several lines.
rows = [1, 2, 3]
assert len(rows) == 4, (
    f"expected 4 rows, "
    f"got {len(rows)}"
)
