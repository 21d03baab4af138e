"""What WASI lacks of Linux, or does otherwise without saying so: locales, timers of signals, waits
without a descriptor, strftime."""

import _locale
import _signal
import locale
import select
import selectors
import signal
import time

import missing
import sessionloop
import strftime

_stock_setlocale = _locale.setlocale
_CODESETS = ("utf8", "utf-8")


def setlocale(category, locale=None, /):
    """_locale.setlocale. WASI's takes any name, and changes nothing then."""
    if isinstance(locale, str):
        names = [name.rpartition("=")[2] for name in locale.split(";")]  # LC_CTYPE=C;LC_TIME=C
        if not all(map(_exists, names)):
            raise _locale.Error("unsupported locale setting")
        locale = ";".join(names)
    return _stock_setlocale(category, locale)


def _exists(name):
    """Reports whether the system has a locale, which is C under all its names."""
    language, _, codeset = name.partition(".")
    return name in ("", "C", "POSIX") or language == "C" and codeset.lower() in _CODESETS


class ItimerError(OSError):
    """signal.ItimerError."""


_TIMERS = {"ITIMER_REAL": 0, "ITIMER_VIRTUAL": 1, "ITIMER_PROF": 2}


def alarm(seconds, /):
    """signal.alarm: no signal can come here, so there is none to cancel either."""
    if seconds:
        _refuse("signal.alarm")
    return 0


def setitimer(which, seconds, interval=0.0, /):
    """signal.setitimer, as alarm."""
    _check_timer(which)
    if seconds:
        _refuse("signal.setitimer")
    return 0.0, 0.0


def getitimer(which, /):
    """signal.getitimer."""
    _check_timer(which)
    return 0.0, 0.0


def pause():
    """signal.pause."""
    _refuse("signal.pause")


def _check_timer(which):
    if which not in _TIMERS.values():
        raise ItimerError(28, "Invalid argument")


def _refuse(what):
    raise missing.processes(what, "use asyncio.timeout, or the timeout of the session, or ")


_stock_select, _stock_poll = select.select, select.poll


def wait(rlist, wlist, xlist, timeout=None, /):
    """select.select, which WASI ends at once if there is no descriptor to wait for."""
    files = [list(files) for files in (rlist, wlist, xlist)]
    if any(files):
        return _stock_select(*files, timeout)
    _stock_select([], [], [], 0 if timeout is None else timeout)  # its own errors
    _wait(timeout)
    return [], [], []


def _wait(seconds):
    if seconds is None:
        raise RuntimeError("deadlock: no descriptor and no timeout can end this wait")
    if seconds > 0:
        time.sleep(seconds)


class Poll:
    """select.poll, which waits as select does."""

    def __init__(self):
        self._poll, self._files = _stock_poll(), set()

    def register(self, fd, *eventmask):
        self._poll.register(fd, *eventmask)
        self._files.add(_number(fd))

    def modify(self, fd, eventmask, /):
        self._poll.modify(fd, eventmask)

    def unregister(self, fd, /):
        self._poll.unregister(fd)
        self._files.discard(_number(fd))

    def poll(self, timeout=None, /):
        if self._files:
            return self._poll.poll(timeout)
        self._poll.poll(0 if timeout is None or timeout < 0 else timeout)
        _wait(None if timeout is None or timeout < 0 else timeout / 1000)
        return []


def _number(file):
    return file if isinstance(file, int) else file.fileno()


def install():
    """Puts these in place of what WASI has, before the first snippet."""
    sessionloop.put_in_place(strftime.strftime, time.strftime)
    sessionloop.put_in_place(setlocale, _stock_setlocale)
    locale._setlocale = setlocale
    sessionloop.put_in_place(wait, _stock_select)
    select.poll = Poll
    Poll.__module__, Poll.__name__, Poll.__qualname__ = "select", "poll", "poll"
    selectors.SelectSelector._select = staticmethod(wait)
    if hasattr(selectors, "PollSelector"):
        selectors.PollSelector._selector_cls = Poll
    _install_timers()


def _install_timers():
    signal.ItimerError, ItimerError.__module__ = ItimerError, "signal"
    for function in (alarm, setitimer, getitimer, pause):
        function.__module__ = "signal"
        setattr(_signal, function.__name__, function)
        setattr(signal, function.__name__, function)
    for name, number in _TIMERS.items():
        setattr(signal, name, number)
        setattr(_signal, name, number)
