# The classes by which snippets explore an agent's trace. The host has the same in
# Go, and both answer alike. Runs as a snippet, on Python 3.9 or newer; what snippets
# are not meant to use begins with _trace.
import dataclasses as _trace_dataclasses
import json as _trace_json
import re as _trace_re

_TRACE_ROLES = {
    "user": "user_message", "human": "user_message",
    "assistant": "agent_response", "ai": "agent_response", "agent": "agent_response", "model": "agent_response",
    "gpt": "agent_response", "gemini": "agent_response", "AIMessageChunk": "agent_response",
    "system": "system_message", "developer": "system_message",
    "tool": "tool_result", "function": "tool_result", "toolResult": "tool_result",
    "observation": "tool_result", "tool_response": "tool_result",
}
# The members by which libraries name the parts of a message, a call and a result.
_TRACE_ROLE_KEYS = ("role", "from", "source", "type")
_TRACE_CONTENT_KEYS = ("content", "parts", "contents", "message", "value")
_TRACE_THOUGHT_KEYS = ("reasoning_content", "reasoning", "thinking")
_TRACE_NAME_KEYS = ("name", "toolName", "tool_name", "function_name")
_TRACE_ARGUMENT_KEYS = ("arguments", "input", "args", "action", "code")
_TRACE_CALL_ID_KEYS = ("call_id", "tool_call_id", "toolCallId", "id")
_TRACE_RESULT_ID_KEYS = ("tool_call_id", "tool_use_id", "call_id", "toolCallId", "source_call_id", "id")
_TRACE_RESULT_KEYS = ("content", "output", "result", "response", "value", "outputs")
_TRACE_FAILED_KEYS = ("error", "is_error", "isError")
_TRACE_GEMINI_PARTS = ("functionCall", "functionResponse", "function_call", "function_response")
_TRACE_SPEAKERS = {
    "reasoning": "Agent (reasoning)", "user_message": "User", "agent_response": "Agent",
    "system_message": "System", "tool_result": "Tool",
}
_TRACE_BRAIN = (
    ("thinking", "Thinking"), ("evaluation_previous_goal", "Evaluation of the previous goal"),
    ("memory", "Memory"), ("next_goal", "Next goal"),
)
_TRACE_MARKER = _trace_re.compile(r"(?mi)^[ \t]*\[(?:assistant|user)\]")
_TRACE_NUMBER = _trace_re.compile(r"(?m)^[ \t]*(?:[Ss]tep[ \t]+)?[0-9]{1,3}[.):][ \t]")
_TRACE_BLANKS = " \t\r\n"


def _trace_cut(text, most):
    most = max(most, 0)
    if len(text) <= most:
        return text
    return f"{text[:most]}... ({len(text) - most} more chars)"


def _trace_pieces(mark, text):
    """The parts of a text that begin with a mark, and the one before the first."""
    found = list(mark.finditer(text))
    if not found:
        return []
    starts = [("", 0)] + [(m.group().strip(_TRACE_BLANKS), m.end()) for m in found]
    ends = [m.start() for m in found] + [len(text)]
    pieces = [(name, text[start:end].strip(_TRACE_BLANKS)) for (name, start), end in zip(starts, ends)]
    return [piece for piece in pieces if piece[1]]


def _trace_json_text(value):
    return _trace_json.dumps(_trace_plain(value), ensure_ascii=False, sort_keys=True, default=str)


def _trace_plain(value):
    """An object of a library as what its JSON has."""
    if hasattr(value, "model_dump"):
        return value.model_dump(exclude_none=True)
    if _trace_dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _trace_dataclasses.asdict(value)
    return value


class _TraceAt:
    """A value of a source, and where in it: "messages[3].content"."""

    def __init__(self, value, path=""):
        self.value = value
        self.path = path

    def wrong(self, expected):
        return TypeError(f"{self.path or 'the trace'}: expected {expected}, not {self.kind()}")

    def kind(self):
        value = self.value
        if value is None:
            return "nothing"
        if isinstance(value, str):
            return "text"
        if isinstance(value, bool):
            return "a boolean"
        if isinstance(value, (int, float)):
            return "a number"
        if isinstance(value, (list, tuple)):
            return "a list"
        return "an object"

    def member(self, key):
        path = f"{self.path}.{key}" if self.path else key
        if isinstance(self.value, dict):
            return _TraceAt(self.value.get(key), path)
        return _TraceAt(getattr(self.value, key, None) if self.kind() == "an object" else None, path)

    def first(self, *keys):
        for key in keys:
            found = self.member(key)
            if found.value is not None:
                return found
        return self.member(keys[0])

    def object(self):
        if self.kind() != "an object":
            raise self.wrong("an object")
        return self

    def list(self):
        if self.value is None:
            return []
        if not isinstance(self.value, (list, tuple)):
            raise self.wrong("a list")
        return [_TraceAt(item, f"{self.path}[{i}]") for i, item in enumerate(self.value)]

    def needed(self, name):
        """This list, or the one that this object has under a name."""
        found = self.member(name) if self.kind() == "an object" else self
        if found.value is None:
            raise found.wrong("a list")
        return found.list()

    def text(self):
        if self.value is None:
            return ""
        if not isinstance(self.value, str):
            raise self.wrong("text")
        return self.value

    def shown(self):
        if self.value is None or isinstance(self.value, str):
            return self.value or ""
        return _trace_json_text(self.value)

    def truth(self):
        if self.value is None:
            return False
        if not isinstance(self.value, bool):
            raise self.wrong("a boolean")
        return self.value

    def seconds(self):
        return float(self.value) if self.kind() == "a number" else None


@_trace_dataclasses.dataclass(repr=False)
class TraceStep:
    """One thing that an agent did, or that was said to it."""

    index: int
    action: str
    thought: str
    observation: str
    timestamp: float = None
    metadata: dict = None

    @property
    def content(self):
        """The thought and the observation."""
        return "\n".join(part for part in (self.thought, self.observation) if part)

    def preview(self, max_len=300):
        """The content, cut to max_len characters, saying how many were left out."""
        return _trace_cut(self.content, max_len)

    def __repr__(self):
        return f"TraceStep({self.index}: {self.action[:30]}...)"

    def __str__(self):
        lines = [f"Step {self.index} [{self.action}]"]
        if self.thought:
            lines.append("  Thought: " + _trace_cut(self.thought, 200))
        if self.observation:
            lines.append("  Observation: " + _trace_cut(self.observation, 200))
        return "\n".join(lines)

    def _markdown(self):
        lines = []
        call = self.action.startswith("tool_call:")
        if call:
            lines.append(f"**Agent** calls {self.action[10:]}({self.thought})")
        elif self.thought or not self.observation:
            speaker = _TRACE_SPEAKERS.get(self.action, f"Agent ({self.action})")
            lines.append(f"**{speaker}:** {self.thought}")
        if self.observation:
            label = "Tool" if call or self.action == "tool_result" else "Observation"
            lines.append(f"**{label}:** {self.observation}")
        return "\n".join(lines)


class TraceContext:
    """An agent's trace, made for exploring it."""

    def __init__(self, steps, raw_reasoning="", system_prompt=""):
        self._steps = list(steps)
        for index, step in enumerate(self._steps):
            if step.index != index:
                self._steps[index] = _trace_dataclasses.replace(step, index=index)
        self._raw_reasoning = raw_reasoning
        self._system_prompt = system_prompt

    @classmethod
    def _kept(cls, kept):
        """The trace that the host keeps, None if it has none."""
        if kept is None:
            return None
        steps = [TraceStep(**step) for step in kept["steps"]]
        for step in steps:
            if step.timestamp is not None:
                step.timestamp = float(step.timestamp)
        return cls(steps, kept["raw_reasoning"], kept["system_prompt"])

    @property
    def steps(self):
        """All steps."""
        return self._steps

    @property
    def raw_reasoning(self):
        """The text that the trace was made of."""
        return self._raw_reasoning

    @property
    def system_prompt(self):
        """The agent's system prompt, empty if it is not known."""
        return self._system_prompt

    def __len__(self):
        return len(self._steps)

    def __iter__(self):
        return iter(self._steps)

    def __getitem__(self, index):
        return self._steps[index]

    def __repr__(self):
        return f"TraceContext({self.summary()})"

    def get_step(self, index):
        """The step of that number, None if there is none."""
        return self._steps[index] if 0 <= index < len(self._steps) else None

    def _where(self, holds):
        return [s for s in self._steps if holds(s.action) or holds(s.thought) or holds(s.observation)]

    def find_steps(self, pattern, case_sensitive=False):
        """The steps whose action, thought or observation has this text in it."""
        if case_sensitive:
            return self._where(lambda text: pattern in text)
        folded = pattern.casefold()
        return self._where(lambda text: folded in text.casefold())

    def find_steps_regex(self, pattern, flags=0):
        """The steps whose action, thought or observation matches a regular expression."""
        return self._where(_trace_re.compile(pattern, flags).search)

    def get_errors(self):
        """The steps that tell of an error, an exception, something that failed, a traceback."""
        signs = ("error", "exception", "failed", "traceback")

        def tells(text):
            text = text.casefold()
            return any(sign in text for sign in signs)

        return self._where(tells)

    def get_actions(self, action_type):
        """The steps whose action has this in it: "tool_call", "tool_call:search"."""
        folded = action_type.casefold()
        return [step for step in self._steps if folded in step.action.casefold()]

    def summary(self):
        """The trace in a sentence."""
        if not self._steps:
            return "Empty trace (no steps)"
        first, last = self._steps[0].action[:30], self._steps[-1].action[:30]
        return f"Trace of {len(self._steps)} steps, from {first} to {last}; {len(self.get_errors())} tell of errors"

    def to_markdown(self):
        """The trace as a conversation."""
        parts = ["## System prompt", self._system_prompt] if self._system_prompt else []
        parts.append("## Trace")
        parts.extend(step._markdown() for step in self._steps)
        return "\n\n".join(parts)

    def search_raw(self, pattern):
        """The numbers of the steps that match a regular expression, in any case."""
        return [step.index for step in self.find_steps_regex(pattern, _trace_re.IGNORECASE)]

    def search_raw_text(self, pattern):
        """What a regular expression matches in the raw text, in any case."""
        found = (m.group() for m in _trace_re.finditer(pattern, self._raw_reasoning, _trace_re.IGNORECASE))
        return [text for text in found if text]

    @classmethod
    def from_agent_output(cls, agent_output):
        """Of an agent's output: an object or a dict with reasoning and final_answer."""
        root = _TraceAt(agent_output)
        if isinstance(agent_output, str):
            reasoning, answer = agent_output, ""
        else:
            reasoning = root.object().member("reasoning").text()
            answer = root.first("final_answer", "answer").shown()
        steps = []
        for mark, text in _trace_pieces(_TRACE_MARKER, reasoning):
            action = "agent_response" if mark else "reasoning"
            if mark.casefold() == "[user]":
                action = "user_message"
            steps.append(TraceStep(len(steps), action, text, ""))
        if not steps:
            steps = [TraceStep(0, "reasoning", reasoning, "")]
        if answer:
            steps[-1].observation = "Answer: " + answer
        return cls(steps, reasoning)

    @classmethod
    def from_reasoning_string(cls, reasoning):
        """Of a text: a step for each line that begins with a number, else one step."""
        steps = [TraceStep(i, "reasoning", text, "") for i, (_, text) in enumerate(_trace_pieces(_TRACE_NUMBER, reasoning))]
        if not steps:
            steps = [TraceStep(0, "reasoning", reasoning.strip(_TRACE_BLANKS), "")]
        return cls(steps, reasoning)

    @classmethod
    def from_browser_use(cls, history):
        """Of browser-use's history, as objects or as its model_dump."""
        talk = _TraceTalk()
        for item in _TraceAt(history).needed("history"):
            step = _trace_browser_step(item.object())
            talk.add(step, step.action, step.content)
        return talk.trace(cls)

    @classmethod
    def from_langchain(cls, intermediate_steps):
        """Of LangChain's intermediate_steps: pairs of AgentAction and observation."""
        root = _TraceAt(intermediate_steps)
        talk = _TraceTalk()
        for pair in root.needed("intermediate_steps"):
            talk.action_and_observation(pair)
        output = root.member("output").shown()
        if output:
            talk.say("assistant", output)
        return talk.trace(cls)

    @classmethod
    def from_conversation_history(cls, messages, max_text_len=1000):
        """Of messages with roles, contents and tool calls, each text cut to max_text_len."""
        return _TraceTalk(max_text_len if max_text_len > 0 else 1000).listen(messages).trace(cls)

    @classmethod
    def from_tau_simulation(cls, messages, system_prompt=""):
        """Of the messages of a tau-bench simulation."""
        return _TraceTalk().listen(messages).trace(cls, system_prompt)

    @classmethod
    def combine(cls, traces):
        """Of several traces, their steps numbered anew."""
        traces = list(traces)
        steps = [step for trace in traces for step in trace.steps]
        raw = [trace.raw_reasoning for trace in traces if trace.raw_reasoning]
        system = [trace.system_prompt for trace in traces if trace.system_prompt]
        return cls(steps, "\n\n---\n\n".join(raw), system[0] if system else "")


class _TraceTalk:
    """Makes steps of what was said and called."""

    def __init__(self, limit=1 << 62):
        self.limit = limit
        self.steps = []
        self.raw = []
        self.calls = []  # the steps of calls, in their order
        self.oldest = 0  # which of them may be the first without a result
        self.waiting = {}  # the steps of calls without a result, by their ids
        self.settled = set()  # the numbers of steps of calls that have one

    def trace(self, cls, system=""):
        return cls(self.steps, "\n\n".join(self.raw), system)

    def add(self, step, label, raw):
        self.steps.append(step)
        self.raw.append(f"[{label}] {raw}")

    def listen(self, messages):
        root = _TraceAt(messages)
        if messages is None:
            raise root.wrong("a list")
        for message in root.list():
            self.message(message.object())
        return self

    def message(self, message):
        many = message.member("tool_messages")
        if many.value is not None:
            for one in many.list():
                self.message(one.object())
            return
        message = _trace_unwrap(message)
        if message.first(*_TRACE_ROLE_KEYS).value is None:
            raise message.member("role").wrong("text")
        role = message.first(*_TRACE_ROLE_KEYS).text()
        if _TRACE_ROLES.get(role) == "tool_result":
            content = message.first(*_TRACE_CONTENT_KEYS)
            parts = content.list() if content.kind() == "a list" else []
            if any(_trace_part_kind(part) == "result" for part in parts):
                self.content(role, content)
            else:
                self.result(message)
            return
        if message.member("role").value is None:
            kind = _trace_part_kind(message)
            if kind != "text" and role not in _TRACE_ROLES:
                self.item(message, role, kind)
                return
        before = len(self.raw)
        self.reasoning(message.first(*_TRACE_THOUGHT_KEYS))
        self.content(role, message.first(*_TRACE_CONTENT_KEYS))
        for call in message.first("tool_calls", "toolCalls").list():
            self.call(call.object())
        old = message.member("function_call")
        if old.value is not None:
            self.call(old.object())
        if len(self.raw) == before:
            self.say(role, "")

    def item(self, message, role, kind):
        """An item without a role: a call, a result or a thought."""
        value = message.member("value")
        if kind == "call" and isinstance(value.value, str):
            inner = _TraceAt(_trace_decoded(value.value), value.path)
            if isinstance(inner.value, dict):
                self.call(inner)
            else:
                self.say(role, value.value)
        elif kind == "call":
            self.call(message)
        elif kind == "result":
            self.result(message)
        elif kind == "thought":
            self.thought(message)
        else:
            self.content(role, message.first(*_TRACE_CONTENT_KEYS))

    def say(self, role, text):
        self.add(TraceStep(len(self.steps), _TRACE_ROLES.get(role, role), _trace_cut(text, self.limit), ""), role, text)

    def reasoning(self, thought):
        text = _trace_result_text(thought)
        if text:
            self.add(TraceStep(len(self.steps), "reasoning", _trace_cut(text, self.limit), ""), "reasoning", text)

    def thought(self, part):
        for key in ("thinking", "summary", "content", "reasoning", "text"):
            before = len(self.steps)
            self.reasoning(part.member(key))
            if len(self.steps) > before:
                return

    def content(self, role, content):
        if content.value is None or isinstance(content.value, str):
            if content.text():
                self.say(role, content.text())
            return
        if content.kind() != "a list":
            raise content.wrong("text or a list of parts")
        said = []

        def flush():
            text = "\n".join(said)
            said.clear()
            if text:
                self.say(role, text)

        for part in content.list():
            text = _trace_part_text(part)
            if text is not None:
                said.append(text)
                continue
            flush()
            self.part(part)
        flush()

    def part(self, part):
        kind = _trace_part_kind(part)
        for key in _TRACE_GEMINI_PARTS:
            if part.member(key).value is not None:
                part = part.member(key)
                break
        if kind == "call":
            self.call(part.object())
        elif kind == "result":
            self.result(part)
        else:
            self.thought(part)

    def call(self, call):
        inner = call.member("function")
        if inner.value is None:
            inner = call
        name = inner.first(*_TRACE_NAME_KEYS).text()
        kind = call.member("type").value
        if not name and isinstance(kind, str):
            name = kind[: -len("_call")] if kind.endswith("_call") else kind
        action = "tool_call:" + name
        arguments = inner.first(*_TRACE_ARGUMENT_KEYS).shown()
        id = call.first(*_TRACE_CALL_ID_KEYS).shown()
        step = TraceStep(len(self.steps), action, _trace_cut(arguments, self.limit), "", None, _trace_requestor(call))
        same = self.waiting.get(id)
        if same is not None and (same.action, same.thought) == (action, step.thought):
            return
        self.add(step, action, arguments)
        self.calls.append(step)
        if id:
            self.waiting[id] = step
        output = call.first("output", "result")
        if output.value is not None:
            self.result_of(call, id, output)

    def result(self, result):
        id = result.first(*_TRACE_RESULT_ID_KEYS).shown()
        self.result_of(result, id, result.first(*_TRACE_RESULT_KEYS))

    def result_of(self, result, id, content):
        text = _trace_result_text(content)
        reason = _trace_failure(result)
        if reason:
            text = "[ERROR] " + (text or reason)
        step = self.call_of(id)
        if step is not None:
            self.settled.add(step.index)
            step.observation = _trace_cut(text, self.limit)
            self.raw.append("[tool] " + text)
            return
        step = TraceStep(len(self.steps), "tool_result", "", _trace_cut(text, self.limit), None, _trace_requestor(result))
        self.add(step, "tool", text)

    def call_of(self, id):
        """The call that a result belongs to: the one of its id, else the oldest that waits."""
        if id:
            return self.waiting.pop(id, None)
        while self.oldest < len(self.calls):
            step = self.calls[self.oldest]
            if step.index not in self.settled:
                return step
            self.oldest += 1
        return None

    def action_and_observation(self, pair):
        if pair.kind() == "an object":
            action, observation = pair.member("action"), pair.member("observation")
        elif pair.kind() == "a list" and len(pair.value) == 2:
            action, observation = pair.list()
        else:
            raise pair.wrong("a pair of action and observation")
        inner = action.object().member("kwargs")
        if inner.value is not None:
            action = inner
        name = "tool_call:" + action.member("tool").text()
        given = action.member("tool_input")
        thought = action.member("log").text().strip(_TRACE_BLANKS) or given.shown()
        metadata = None if given.value is None else {"tool_input": given.value}
        step = TraceStep(len(self.steps), name, thought, observation.shown(), None, metadata)
        self.add(step, name, step.content)


def _trace_requestor(source):
    return {"requestor": "user"} if source.member("requestor").value == "user" else None


def _trace_unwrap(message):
    """The message in a serialized message of LangChain."""
    inner = message.first("data", "kwargs")
    if not isinstance(inner.value, dict) or message.member("role").value is not None:
        return message
    name = message.member("type").value
    classes = message.member("id").value
    if isinstance(classes, (list, tuple)) and classes:
        name = classes[-1]
    if isinstance(inner.value.get("type"), str):
        name = inner.value["type"]
    name = name if isinstance(name, str) else ""
    for suffix in ("Chunk", "Message"):
        name = name[: -len(suffix)] if name.endswith(suffix) else name
    members = {key: value for key, value in inner.value.items() if key != "type"}
    return _TraceAt({"role": name.lower(), **members}, inner.path)


def _trace_decoded(text):
    """The JSON in a text, None if it is none."""

    def refuse(name):
        raise ValueError(name)

    try:
        return _trace_json.loads(text, parse_constant=refuse)
    except ValueError:
        return None


def _trace_failure(result):
    """Why a result says that the call failed, empty if it did not."""
    if result.member("status").value == "error":
        return "failed"
    mark = result.first(*_TRACE_FAILED_KEYS)
    if isinstance(mark.value, str):
        return mark.value
    if mark.value is not None and not isinstance(mark.value, bool):
        raise mark.wrong("a boolean or text")
    return "failed" if mark.value else ""


def _trace_part_kind(part):
    """What a part or an item is: text, call, result, thought, or "" for anything else."""
    name = part.first("type", "from").value
    name = name if isinstance(name, str) else ""
    for key in _TRACE_GEMINI_PARTS:
        if not name and part.member(key).value is not None:
            name = key
    name = name.replace("_", "").replace("-", "").lower()
    if part.member("thought").value is True or name.endswith(("thinking", "reasoning", "thought")):
        return "thought"
    if name.endswith(("tooluse", "call", "toolinvocation")):
        return "call"
    if name.endswith(("toolresult", "calloutput", "callresponse", "functionresponse")):
        return "result"
    if not name and part.member("text").value is not None or name.endswith(("text", "refusal", "message")):
        return "text"
    return ""


def _trace_part_text(part):
    """What a part says, None for one that is a call, a result or a thought."""
    if isinstance(part.value, str):
        return part.value
    if part.kind() != "an object":
        raise part.wrong("text or an object")
    name = part.member("type").text()
    kind = _trace_part_kind(part)
    if kind == "text":
        return part.first("text", "content", "refusal").text()
    if kind:
        return None
    if part.member("text").value is not None:
        return part.member("text").text()
    if not name and isinstance(part.value, dict) and part.value:
        name = min(part.value)
    return f"[{name}]"


def _trace_result_text(content):
    if content.kind() != "a list":
        return content.shown()
    try:
        texts = [_trace_part_text(part) for part in content.list()]
    except TypeError:
        texts = [None]
    return content.shown() if None in texts else "\n".join(texts)


def _trace_browser_step(item):
    output = item.member("model_output")
    if output.value is not None:
        output.object()
    brain = output.first("current_state")
    brain = output if brain.value is None else brain
    thoughts = [(label, brain.member(name).text()) for name, label in _TRACE_BRAIN]
    lines = [f"{label}: {text}" for label, text in thoughts if text]
    names = []
    for action in output.member("action").list():
        given = _trace_plain(action.object().value)
        given = given if isinstance(given, dict) else vars(given)
        for name in sorted(given):
            if given[name] is not None and name != "interacted_element":
                names.append(name)
                lines.append(f"Action: {name}({_trace_json_text(given[name])})")
    results = []
    for result in item.member("result").list():
        result.object()
        for key, label in (("error", "[ERROR] "), ("extracted_content", ""), ("long_term_memory", "Memory: ")):
            text = result.member(key).text()
            if text:
                results.append(label + text)
        if result.member("is_done").truth():
            results.append("[DONE] success: " + _trace_json_text(result.member("success").value))
    state = item.member("state")
    where = {key: state.member(key).text() for key in ("url", "title")}
    metadata = {key: text for key, text in where.items() if text}
    action = "tool_call:" + ",".join(names) if names else "no_action"
    started = item.member("metadata").member("step_start_time").seconds()
    return TraceStep(0, action, "\n".join(lines), "\n".join(results), started, metadata or None)
