# A class of the main module is named without it; a nested one with its outer class.
class Outer:
    class Inner(Exception):
        def __init__(self, code):
            self.code = code

        def __str__(self):
            return f"code {self.code}\nsecond line"


raise Outer.Inner(42)
