"""Host functions: called, awaited or handed to an executor.

A call blocks and returns the value. Inside a coroutine the snippet's awaits are
arranged (see awaits.py) so that the same function is started instead, and the
calls of one gather run on the host at the same time.
"""

import finish
import queries
import wire


known = {}  # name -> the function of that name, also where a snippet has taken the name


def answer(request):
    """Makes a call, and waits for its answer."""
    return wire.decode_answer(wire.send("c", request))


class HostFunction:
    """One function of the host, under its global name."""

    def __init__(self, name, doc=None):
        self.__name__ = self.__qualname__ = name
        self.__doc__ = doc
        self.__module__ = "__main__"

    def __call__(self, *args, **kwargs):
        request, receive = self.request(args, kwargs)
        value = answer(request)
        return wire.settle(value) if receive is None else receive(value)

    def request(self, args, kwargs):
        """Returns the request, and the function that converts the answer."""
        if finish.done:
            raise finish.Finished()
        convert, receive = queries.CONVERTERS.get(self.__name__), None
        if convert is not None:
            args, kwargs, receive = convert(args, kwargs)
        return f"{self.__name__}\0{wire.encode((args, kwargs))}", receive

    def __get__(self, instance, owner=None):
        return self  # a host function stored on a class takes no self

    def __repr__(self):
        return f"<host function {self.__name__}>"

    def __reduce__(self):
        return self.__name__  # pickled as the global name it stands for
