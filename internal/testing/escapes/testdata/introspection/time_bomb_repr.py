# reads a file in the repr of its answer
class B(dict):
    def __repr__(self): return open(CANARY_FILE).read()
    __str__ = __repr__
print(B())
FINAL(str(B()))
