"""Uses rlm serve with agent frameworks and official clients of Python.

usage: frameworks.py ADDRESS

Each of them asks, streams, and lets the model call a tool, whose result is its second turn: once
whole and once as a stream, where it has streams of tools. No wire is mocked; only the model is.
"""

import asyncio
import ipaddress
import json
import os
import sys
import traceback

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # it would load prices from the Internet
os.environ["OPENAI_AGENTS_DISABLE_TRACING"] = "1"
os.environ["LANGSMITH_TRACING"] = "false"


def stay_here(event, arguments):
    """Refuses every connection but those to this machine."""
    if event == "socket.connect" and isinstance(arguments[1], tuple):
        if not ipaddress.ip_address(arguments[1][0]).is_loopback:
            raise ConnectionRefusedError(f"a client connects to {arguments[1]}")


sys.addaudithook(stay_here)

V1 = sys.argv[1]
HOST = V1.removesuffix("/v1")
MODEL = "rlm/default"
HELLO = "Hello from the model."
CLEAR = "It is clear."
HI = [{"role": "user", "content": "hi"}]
WEATHER = [{"role": "user", "content": "What is the weather like in San Francisco?"}]
PARAMETERS = {"type": "object", "properties": {"location": {"type": "string"}}, "required": ["location"]}


def get_weather(location: str) -> str:
    """Tells the weather."""
    assert location == "San Francisco", location
    return "clear"


def openai_chat():
    import openai

    client = openai.OpenAI(base_url=V1, api_key="unused", max_retries=0).chat.completions
    tools = [{"type": "function", "function": {"name": "get_weather", "parameters": PARAMETERS}}]
    yield HELLO, client.create(model=MODEL, messages=HI).choices[0].message.content
    yield HELLO, "".join(
        c.choices[0].delta.content or "" for c in client.create(model=MODEL, messages=HI, stream=True) if c.choices)
    for is_stream in (False, True):
        def ask(messages):
            if not is_stream:
                return client.create(model=MODEL, messages=messages, tools=tools).choices[0].message
            with client.stream(model=MODEL, messages=messages, tools=tools) as stream:
                return stream.get_final_completion().choices[0].message

        said = ask(WEATHER)
        call = said.tool_calls[0]
        result = get_weather(**json.loads(call.function.arguments))
        yield CLEAR, ask([*WEATHER, said, {"role": "tool", "tool_call_id": call.id, "content": result}]).content


def openai_responses():
    import openai

    client = openai.OpenAI(base_url=V1, api_key="unused", max_retries=0).responses
    tools = [{"type": "function", "name": "get_weather", "parameters": PARAMETERS, "strict": False}]
    yield HELLO, client.create(model=MODEL, input="hi").output_text
    with client.stream(model=MODEL, input="hi") as stream:
        yield HELLO, "".join(e.delta for e in stream if e.type == "response.output_text.delta")
    for more in ({}, {"store": False}):
        first = client.create(model=MODEL, input=WEATHER, tools=tools, **more)
        call = first.output[0]
        result = {"type": "function_call_output", "call_id": call.call_id,
                  "output": get_weather(**json.loads(call.arguments))}
        if more:
            got = client.create(model=MODEL, input=[*WEATHER, *first.output, result], tools=tools, **more)
        else:
            got = client.create(model=MODEL, input=[result], previous_response_id=first.id, tools=tools)
        yield CLEAR, got.output_text


def anthropic():
    import anthropic

    client = anthropic.Anthropic(base_url=HOST, api_key="unused", max_retries=0).messages
    common = {"model": MODEL, "max_tokens": 1000}
    tools = [{"name": "get_weather", "input_schema": PARAMETERS}]
    got = client.create(messages=HI, system="Be kind.", **common)
    assert got.stop_reason == "end_turn" and got.usage.input_tokens > 0 and got.usage.output_tokens > 0, got
    yield HELLO, got.content[0].text
    with client.stream(messages=HI, **common) as stream:
        yield HELLO, "".join(stream.text_stream)
        assert stream.get_final_message().usage.output_tokens > 0
    for is_stream in (False, True):
        def ask(messages):
            if not is_stream:
                return client.create(messages=messages, tools=tools, **common)
            with client.stream(messages=messages, tools=tools, **common) as stream:
                return stream.get_final_message()

        said = ask(WEATHER)
        assert said.stop_reason == "tool_use", said
        call = said.content[-1]
        result = {"type": "tool_result", "tool_use_id": call.id, "content": get_weather(**call.input)}
        got = ask([*WEATHER, {"role": "assistant", "content": said.content}, {"role": "user", "content": [result]}])
        yield CLEAR, got.content[0].text
    yield True, client.count_tokens(model=MODEL, messages=HI).input_tokens > 0
    try:
        client.create(messages=HI, model="claude-unknown", max_tokens=10)
        yield "an error", "an answer"
    except anthropic.NotFoundError as e:
        yield "not_found_error", e.body["error"]["type"]


def langchain(model):
    from langchain_core.messages import HumanMessage, ToolMessage
    from langchain_core.tools import tool

    text = lambda m: m.text if isinstance(m.text, str) else m.text()  # noqa: E731
    yield HELLO, text(model.invoke("hi"))
    yield HELLO, "".join(text(c) for c in model.stream("hi"))
    bound = model.bind_tools([tool(get_weather)])
    for is_stream in (False, True):
        def ask(messages):
            if not is_stream:
                return bound.invoke(messages)
            pieces = list(bound.stream(messages))
            whole = pieces[0]
            for piece in pieces[1:]:
                whole += piece
            return whole

        messages = [HumanMessage("What is the weather like in San Francisco?")]
        said = ask(messages)
        call = said.tool_calls[0]
        messages += [said, ToolMessage(get_weather(**call["args"]), tool_call_id=call["id"])]
        yield CLEAR, text(ask(messages))


def langchain_openai_chat():
    from langchain_openai import ChatOpenAI

    yield from langchain(ChatOpenAI(model=MODEL, base_url=V1, api_key="unused", max_retries=0))


def langchain_openai_responses():
    from langchain_openai import ChatOpenAI

    yield from langchain(ChatOpenAI(
        model=MODEL, base_url=V1, api_key="unused", max_retries=0, use_responses_api=True))


def langchain_anthropic():
    from langchain_anthropic import ChatAnthropic

    yield from langchain(ChatAnthropic(model=MODEL, base_url=HOST, api_key="unused", max_retries=0, max_tokens=1000))


def openai_agents(kind):
    import agents
    import openai

    agents.set_tracing_disabled(True)
    client = openai.AsyncOpenAI(base_url=V1, api_key="unused", max_retries=0)
    model = getattr(agents, kind)(model=MODEL, openai_client=client)
    plain = agents.Agent(name="plain", model=model)
    caller = agents.Agent(name="caller", model=model, tools=[agents.function_tool(get_weather)])

    async def stream(agent, question):
        result = agents.Runner.run_streamed(agent, question)
        async for _ in result.stream_events():
            pass
        return result.final_output

    async def all_of_them():
        yield HELLO, (await agents.Runner.run(plain, "hi")).final_output
        yield HELLO, await stream(plain, "hi")
        first = await agents.Runner.run(caller, WEATHER[0]["content"])
        yield CLEAR, first.final_output
        again = await agents.Runner.run(plain, [*first.to_input_list(), *HI])
        yield HELLO, again.final_output
        yield CLEAR, await stream(caller, WEATHER[0]["content"])

    yield from collect(all_of_them())


def collect(pairs):
    async def listed():
        return [pair async for pair in pairs]

    return asyncio.run(listed())


def openai_agents_chat():
    return openai_agents("OpenAIChatCompletionsModel")


def openai_agents_responses():
    return openai_agents("OpenAIResponsesModel")


def pydantic_ai(model):
    from pydantic_ai import Agent

    async def stream(agent, question):
        async with agent.run_stream(question) as result:
            return "".join([piece async for piece in result.stream_text(delta=True)])

    async def all_of_them():
        plain, caller = Agent(model), Agent(model, tools=[get_weather])
        yield HELLO, (await plain.run("hi")).output
        yield HELLO, await stream(plain, "hi")
        first = await caller.run(WEATHER[0]["content"])
        yield CLEAR, first.output
        yield HELLO, (await plain.run("hi", message_history=first.all_messages())).output
        yield CLEAR, await stream(caller, WEATHER[0]["content"])

    yield from collect(all_of_them())


def pydantic_ai_chat():
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    yield from pydantic_ai(OpenAIChatModel(MODEL, provider=OpenAIProvider(base_url=V1, api_key="unused")))


def pydantic_ai_responses():
    from pydantic_ai.models.openai import OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    yield from pydantic_ai(OpenAIResponsesModel(MODEL, provider=OpenAIProvider(base_url=V1, api_key="unused")))


def pydantic_ai_anthropic():
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    yield from pydantic_ai(AnthropicModel(MODEL, provider=AnthropicProvider(base_url=HOST, api_key="unused")))


def instructor_of(client, **more):
    import pydantic

    class City(pydantic.BaseModel):
        city: str
        people: int

    oslo = {"city": "Oslo", "people": 700_000}
    asked = {"model": MODEL, "messages": [{"role": "user", "content": "a city"}], "max_retries": 0, **more}
    yield oslo, client.create(response_model=City, **asked).model_dump()
    yield oslo, list(client.create_partial(response_model=City, **asked))[-1].model_dump()


def instructor_openai():
    import instructor
    import openai

    client = openai.OpenAI(base_url=V1, api_key="unused", max_retries=0)
    for mode in (instructor.Mode.TOOLS, instructor.Mode.JSON_SCHEMA):
        yield from instructor_of(instructor.from_openai(client, mode=mode))


def instructor_anthropic():
    import anthropic
    import instructor

    client = anthropic.Anthropic(base_url=HOST, api_key="unused", max_retries=0)
    yield from instructor_of(instructor.from_anthropic(client), max_tokens=1000)


def litellm(model, base):
    import litellm

    litellm.telemetry = False
    litellm.suppress_debug_info = True
    common = {"model": model, "api_base": base, "api_key": "unused", "num_retries": 0}
    tools = [{"type": "function", "function": {
        "name": "get_weather", "description": "Tells the weather.", "parameters": PARAMETERS}}]
    yield HELLO, litellm.completion(messages=HI, **common).choices[0].message.content
    yield HELLO, "".join(
        c.choices[0].delta.content or "" for c in litellm.completion(messages=HI, stream=True, **common))
    for is_stream in (False, True):
        def ask(messages):
            got = litellm.completion(messages=messages, tools=tools, stream=is_stream, **common)
            if is_stream:
                got = litellm.stream_chunk_builder(list(got), messages=messages)
            return got.choices[0].message

        said = ask(WEATHER)
        call = said.tool_calls[0]
        result = get_weather(**json.loads(call.function.arguments))
        again = [*WEATHER, said.model_dump(), {"role": "tool", "tool_call_id": call.id, "content": result}]
        yield CLEAR, ask(again).content


def litellm_openai():
    return litellm("openai/" + MODEL, V1)


def litellm_anthropic():
    return litellm("anthropic/" + MODEL, HOST)


checks = [
    openai_chat, openai_responses, anthropic,
    langchain_openai_chat, langchain_openai_responses, langchain_anthropic,
    openai_agents_chat, openai_agents_responses,
    pydantic_ai_chat, pydantic_ai_responses, pydantic_ai_anthropic,
    instructor_openai, instructor_anthropic, litellm_openai, litellm_anthropic,
]
only = sys.argv[2:]
failed = []
for check in checks:
    if only and check.__name__ not in only:
        continue
    n = 0
    try:
        for n, (want, got) in enumerate(check(), 1):
            assert got == want, f"answer {n} is {got!r}, not {want!r}"
        print(f"{check.__name__}: {n} answers")
    except Exception:  # noqa: BLE001 # the others are checked, too
        traceback.print_exc()
        failed.append(check.__name__)
if failed:
    sys.exit("failed: " + ", ".join(failed))
