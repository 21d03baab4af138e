"""Host functions: called, awaited or handed to an executor.

A call blocks and returns the value. Inside a coroutine the snippet's awaits are
arranged (see awaits.py) so that the same function is started instead, and the
calls of one gather run on the host at the same time.
"""

import finish
import queries
import wire


class HostFunction:
    """One function of the host, under its global name."""

    def __init__(self, name, doc=None):
        self.__name__ = self.__qualname__ = name
        self.__doc__ = doc
        self.__module__ = "__main__"

    def __call__(self, *args, **kwargs):
        request, receive = self.request(args, kwargs)
        value = wire.decode(wire.send("c", request))
        return value if receive is None else receive(value)

    def start(self, args, kwargs):
        """Starts the call on the host; its number, for events.wait, and what makes
        the value of the answer, None for nothing."""
        request, receive = self.request(args, kwargs)
        return int(wire.send("s", request)), receive

    def request(self, args, kwargs):
        """What goes out, and what makes the value of the answer."""
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


class Deferred:
    """A lambda that only calls a host function: make says which, with what."""

    def __init__(self, make):
        self.make = make

    def __call__(self, *args, **kwargs):
        function, args, kwargs = self.make(*args, **kwargs)
        return function(*args, **kwargs)


# The names of the REPL protocol. They exist in every session; a host that does
# not offer one answers so.
PROTOCOL = {
    "llm_query": "llm_query(prompt, model=None, schema=None): ask a model; returns its answer.",
    "llm_query_batched": "llm_query_batched(prompts, model=None, schema=None): ask many at once, order kept.",
    "llm_batch": "Alias of llm_query_batched.",
    "batch_llm_query": "Alias of llm_query_batched.",
    "llm_query_parallel": "Alias of llm_query_batched.",
    "llm_query_map": "Alias of llm_query_batched.",
    "rlm_query": "rlm_query(prompt, context=None, schema=None, model=None): a sub-task with its own session.",
    "rlm_query_batched": "rlm_query_batched(prompts, ...): many sub-tasks at once, order kept.",
    "run_parallel_sub_calls": 'run_parallel_sub_calls([{"prompt", "context", "schema", "model"}, ...])',
    "recursive_llm": "recursive_llm(sub_query, sub_context): alias of rlm_query.",
    "ask_llm": 'ask_llm(question, context="", mode="analysis"): ask a helper model.',
    "sub_agent_call": "sub_agent_call(prompt, agent_id, data): ask a registered agent.",
    "predict": 'predict("question, passage -> answer: str", **inputs): a typed model call.',
}
