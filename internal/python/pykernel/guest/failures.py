"""What stands for a sub-call that failed."""

failed = False  # whether the session has met a SubCallError


class SubCallError(str):
    """A sub-call that failed: a text that begins with "Error: ". It is no answer, see answers."""

    __slots__ = ()
    __module__ = "__main__"

    def __new__(cls, text=""):
        global failed
        failed = True
        return str.__new__(cls, text)

    def __repr__(self):
        return f"SubCallError({str(self)!r})"

    @property
    def error(self):
        return self.removeprefix("Error: ")


class TypedSubCallError(SubCallError):
    """A sub-call with a type that failed. It is no value of that type: no filter takes it for
    a no, and no calculation for a number."""

    __slots__ = ()
    __module__ = "__main__"

    def __refuse(self, *_):
        raise TypeError(f"this sub-call failed and has no value: {self}. "
                        "Test for it with isinstance(x, SubCallError), and repeat it or leave it out")

    __bool__ = __iter__ = __mul__ = __rmul__ = __mod__ = __rmod__ = __refuse


TypedSubCallError.__name__ = TypedSubCallError.__qualname__ = "SubCallError"
