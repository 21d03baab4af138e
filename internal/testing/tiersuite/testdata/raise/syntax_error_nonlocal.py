# Raised by the symbol table, after parsing.
def f():
    nonlocal missing
    missing = 1
