# What a trace says to everything that it can be asked, as the Go test asks it. Runs
# after the classes.
import json
import re
import types


def trace_answers(trace, probes):
    return {
        "steps": [[s.index, s.action, s.thought, s.observation, s.timestamp, s.metadata] for s in trace],
        "raw": trace.raw_reasoning,
        "system": trace.system_prompt,
        "len": len(trace),
        "same": [s is trace[i] and s is trace.steps[i] for i, s in enumerate(trace)],
        "get": [None if s is None else s.index for s in (trace.get_step(i) for i in (0, 1, -1, len(trace), 10**9))],
        "content": [s.content for s in trace],
        "preview": [[s.preview(), s.preview(7), s.preview(max_len=0)] for s in trace],
        "repr": [repr(s) for s in trace],
        "str": [str(s) for s in trace],
        "errors": [s.index for s in trace.get_errors()],
        "summary": trace.summary(),
        "markdown": trace.to_markdown(),
        "actions": [[s.index for s in trace.get_actions(p)] for p in probes],
        "find": [[s.index for s in trace.find_steps(p)] for p in probes],
        "find_case": [[s.index for s in trace.find_steps(p, case_sensitive=True)] for p in probes],
        "regex": [[s.index for s in trace.find_steps_regex(re.escape(p))] for p in probes],
        "regex_flags": [[s.index for s in trace.find_steps_regex("^" + re.escape(p), re.MULTILINE)] for p in probes],
        "search": [trace.search_raw(re.escape(p)) for p in probes],
        "search_text": [trace.search_raw_text(re.escape(p) + "[a-z]*") for p in probes],
    }


def trace_objects(factory, source):
    """A source that is right as the objects that the libraries have, not their JSON."""

    def object_of(value, **lists):
        if value is None:
            return None
        made = types.SimpleNamespace(**value)
        for name, convert in lists.items():
            old = value.get(name)
            setattr(made, name, [convert(item) for item in old] if isinstance(old, list) else convert(old))
        return made

    def output_of(value):
        return object_of(value, action=object_of, current_state=object_of)

    def message_of(value):
        return object_of(value, tool_calls=object_of, tool_messages=object_of)

    def item_of(value):
        return object_of(value, model_output=output_of, result=object_of, state=object_of, metadata=object_of)

    def pair_of(value):
        if isinstance(value, dict):
            return (object_of(value["action"]), value["observation"])
        return (object_of(value[0].get("kwargs", value[0])), value[1])

    if factory == "agent":
        return object_of(source)
    if factory == "browser-use":
        return object_of(source, history=item_of)
    return [{"langchain": pair_of, "tau": message_of}[factory](item) for item in source]


def trace_make(case):
    """The trace of a case, or what is wrong with it."""
    source = case["source"]
    if case["objects"]:
        source = trace_objects(case["factory"], source)
    make = {
        "agent": TraceContext.from_agent_output,
        "reasoning": TraceContext.from_reasoning_string,
        "browser-use": TraceContext.from_browser_use,
        "langchain": TraceContext.from_langchain,
        "conversation": lambda v: TraceContext.from_conversation_history(v, max_text_len=case["limit"]),
        "tau": lambda v: TraceContext.from_tau_simulation(v, system_prompt=case["system"]),
        "combine": lambda v: TraceContext.combine([TraceContext.from_reasoning_string(text) for text in v]),
    }[case["factory"]]
    try:
        trace = make(source)
    except TypeError as e:
        return {"error": str(e)}
    return trace_answers(trace, case["probes"])
