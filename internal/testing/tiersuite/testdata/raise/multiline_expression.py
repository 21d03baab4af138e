# Anchors over an expression of several lines.
table = {"a": [1, 2, 3], "b": None}
value = (
    table["a"][0]
    + table["b"][1]
    + 7
)
