# calls the host from a comparison of objects
class C:
    def __lt__(self, other):
        try: ask()
        except BaseException: pass
        return True
sorted([C() for _ in range(30)])
