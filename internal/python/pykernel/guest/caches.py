"""The answers that functools.cache keeps, so that a session which has moved does not pay for
a call again. The counters of cache_info begin anew."""

import functools
import gc
import types

import definitions


def _reduce(function):
    if definitions.importable(function):
        return function.__qualname__
    own = {name: value for name, value in function.__dict__.items() if name not in ("cache_parameters", "__wrapped__")}
    parameters = function.cache_parameters()
    entries = _entries(function, parameters)
    if entries and parameters["maxsize"] is not None and type(function.__wrapped__) is not types.FunctionType:
        definitions.lost("lru_cache", "only a cache without maxsize keeps the answers of a function that is not Python")
        entries = []
    return make_lru, (function.__wrapped__, parameters), (own, entries), None, None, set_lru


def _insides(function, parameters):
    """Returns (keys and results, the dict, the mark before keyword arguments). A cache with
    a maxsize refers to its keys and results in order of their use. CPython before 3.10 hides
    the mark."""
    found = [value for value in gc.get_referents(function) if value is not type(function)]
    pairs = []
    if parameters["maxsize"]:
        size = function.cache_info().currsize
        width = 3 if len(found) > 2 and getattr(found[2], "__name__", "") == "_lru_list_elem" else 2
        pairs = [(found[width * i], found[width * i + 1]) for i in range(size)]
        found = found[width * size:]
    answers = next(value for value in found if type(value) is dict and value is not function.__dict__)
    return pairs or list(answers.items()), answers, next((value for value in found if type(value) is object), None)


def _entries(function, parameters):
    """Returns (the key if it is the only argument, what stands before the mark, what stands
    after it, the result) of each answer."""
    pairs, _, mark = _insides(function, parameters)
    entries = []
    for key, result in pairs:
        if type(key) is not tuple:
            entries.append(((key,), None, None, result))
            continue
        at = next((i for i, part in enumerate(key) if part is mark or mark is None and type(part) is object), None)
        entries.append((None, key[:at], None if at is None else key[at + 1:], result))
    return entries


def make_lru(function, parameters):
    return functools.lru_cache(**parameters)(function)


def set_lru(function, state):
    own, entries = state
    function.__dict__.update(own)
    if not entries:
        return
    try:
        if function.cache_parameters()["maxsize"] is None:
            _fill(function, entries)
        else:
            _answer_again(function, entries)
    except Exception as error:
        definitions.lost("lru_cache", f"its answers cannot be kept: {error}")


def _fill(function, entries):
    _, answers, mark = _insides(function, function.cache_parameters())
    if mark is None and any(after is not None for _, _, after, _ in entries):
        raise ValueError("this Python hides how it keeps keyword arguments")
    for only, before, after, result in entries:
        key = only[0] if only else before if after is None else (*before, mark, *after)
        answers[key] = result


def _answer_again(function, entries):
    """Calls the cache as it was called, while its function gives the answers of then."""
    results = iter([result for *_, result in entries])
    inner = function.__wrapped__
    code, options = inner.__code__, inner.__kwdefaults__
    inner.__code__ = _giver.__code__.replace(co_freevars=code.co_freevars)
    inner.__kwdefaults__ = {"_rlm_give": results.__next__}
    try:
        for entry in entries:
            args, kwargs = _arguments(*entry[:3], function.cache_parameters()["typed"])
            function(*args, **kwargs)
    finally:
        inner.__code__, inner.__kwdefaults__ = code, options


def _giver(*args, _rlm_give, **kwargs):
    return _rlm_give()


def _arguments(only, before, after, typed):
    """Returns the arguments that a key was made of. With typed their types follow them."""
    if only:
        return only, {}
    if after is None:
        return before[: len(before) // 2] if typed else before, {}
    count = (len(after) - len(before)) // 3 if typed else len(after) // 2
    return before, {after[2 * i]: after[2 * i + 1] for i in range(count)}


definitions.SPECIAL[functools._lru_cache_wrapper] = _reduce
NAMED = (make_lru, set_lru)
