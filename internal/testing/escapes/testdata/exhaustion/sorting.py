# sorts objects whose comparison never ends
# harm: hangs
class C:
    def __lt__(self, other):
        while True: pass
sorted([C(), C()])
