"""Uses rlm serve with the official client of Python. usage: client.py ADDRESS"""

import base64
import io
import sys

import openai

client = openai.OpenAI(base_url=sys.argv[1], api_key="unused", max_retries=0)
model = "rlm/default"
hay = "hay needle " * 20_000


def check_models():
    assert [m.id for m in client.models.list()] == [model]
    assert client.models.retrieve(model).owned_by == "rlm"
    try:
        client.chat.completions.create(model="gpt-5", messages=[{"role": "user", "content": "hi"}])
        raise AssertionError("an unknown model answers")
    except openai.NotFoundError as e:
        assert e.code == "model_not_found" and e.param == "model", e


def check_chat():
    hi = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "hi"}]
    got = client.chat.completions.create(model=model, messages=hi)
    assert got.choices[0].message.content == "Hello from the model.", got
    assert got.choices[0].finish_reason == "stop" and got.usage.total_tokens > 0

    text, used = "", None
    for chunk in client.chat.completions.create(
        model=model, messages=hi, stream=True, stream_options={"include_usage": True}
    ):
        used = chunk.usage or used
        text += "".join(c.delta.content or "" for c in chunk.choices)
    assert text == "Hello from the model." and used.completion_tokens > 0

    long = [{"role": "user", "content": [{"type": "text", "text": hay}, {"type": "text", "text": "How many needles?"}]}]
    got = client.chat.completions.create(model=model, messages=long)
    assert got.choices[0].message.content == "there are 20000 needles", got
    with client.chat.completions.stream(model=model, messages=long) as stream:
        final = stream.get_final_completion()
    assert final.choices[0].message.content == "there are 20000 needles", final


def check_structure():
    import pydantic

    class City(pydantic.BaseModel):
        city: str
        people: int

    got = client.chat.completions.parse(
        model=model, messages=[{"role": "user", "content": "a city"}], response_format=City
    )
    assert got.choices[0].message.parsed == City(city="Oslo", people=700_000), got
    got = client.responses.parse(model=model, input="a city", text_format=City)
    assert got.output_parsed.city == "Oslo", got


def check_responses():
    first = client.responses.create(model=model, input="hi", instructions="Be kind.")
    assert first.status == "completed" and first.output_text == "Hello from the model.", first
    second = client.responses.create(model=model, input="what did I say?", previous_response_id=first.id)
    assert second.output_text == "You said something.", second
    assert client.responses.retrieve(second.id).output_text == second.output_text
    assert client.responses.input_items.list(second.id).data[0].content[0].text == "what did I say?"

    kinds, text = [], ""
    with client.responses.stream(model=model, input="hi") as stream:
        for event in stream:
            kinds.append(event.type)
            if event.type == "response.output_text.delta":
                text += event.delta
        assert stream.get_final_response().output_text == text == "Hello from the model."
    assert kinds[0] == "response.created" and kinds[-1] == "response.completed", kinds
    client.responses.delete(first.id)
    try:
        client.responses.retrieve(first.id)
        raise AssertionError("a deleted response is there")
    except openai.NotFoundError:
        pass


def check_functions():
    weather = {"name": "get_weather", "description": "Tells the weather.", "parameters": {
        "type": "object", "properties": {"location": {"type": "string"}}, "required": ["location"]}}
    tools = [{"type": "function", "function": weather}]
    messages = [{"role": "user", "content": "What is the weather like in San Francisco?"}]
    got = client.chat.completions.create(model=model, messages=messages, tools=tools)
    call = got.choices[0].message.tool_calls[0]
    assert got.choices[0].finish_reason == "tool_calls" and got.choices[0].message.content is None, got
    assert call.function.name == "get_weather" and "San Francisco" in call.function.arguments, call
    messages += [got.choices[0].message, {"role": "tool", "tool_call_id": call.id, "content": "clear"}]
    got = client.chat.completions.create(model=model, messages=messages, tools=tools)
    assert got.choices[0].message.content == "It is clear.", got
    assert got.choices[0].finish_reason == "stop" and not got.choices[0].message.tool_calls, got

    with client.chat.completions.stream(model=model, messages=messages[:1], tools=tools) as stream:
        final = stream.get_final_completion()
    assert final.choices[0].message.tool_calls[0].function.name == "get_weather", final

    with client.responses.stream(
        model=model, input=messages[:1], tools=[{"type": "function", "strict": True, **weather}]
    ) as stream:
        final = stream.get_final_response()
    asked = final.output[0]
    assert asked.type == "function_call" and asked.call_id and "San Francisco" in asked.arguments, final
    items = client.responses.input_items.list(client.responses.create(
        model=model, previous_response_id=final.id, tools=[{"type": "function", "strict": True, **weather}],
        input=[{"type": "function_call_output", "call_id": asked.call_id, "output": "clear"}]).id)
    assert items.data[0].type == "function_call_output" and items.data[0].call_id == asked.call_id, items


def check_words_beside_functions():
    tools = [{"type": "function", "function": {"name": "ping", "parameters": {
        "type": "object", "properties": {"p": {"type": "string", "pattern": r"^(?!\.)(?!.*\.\.).+$"}}}}}]
    got = client.chat.completions.create(
        model=model, messages=[{"role": "user", "content": "no call, please"}], tools=tools)
    assert got.choices[0].message.content == "It needs no call." and not got.choices[0].message.tool_calls, got
    assert got.choices[0].finish_reason == "stop", got


def check_items():
    first = client.responses.create(model=model, input="hi")
    second = client.responses.create(model=model, input=[
        {"role": "user", "content": "hi"}, {"type": "item_reference", "id": first.output[0].id},
        {"role": "user", "content": "what did I say?"}])
    assert second.output_text == "You said something.", second
    try:
        client.responses.create(model=model, input=[{"type": "item_reference", "id": "msg_none"}])
        raise AssertionError("an unknown item is there")
    except openai.NotFoundError as e:
        assert e.code == "item_not_found" and e.param == "input[0]", e


def check_conversations():
    made = client.conversations.create(
        items=[{"type": "message", "role": "user", "content": "hello"}], metadata={"topic": "demo"})
    got = client.responses.create(model=model, conversation=made.id, input="what did I say?")
    assert got.output_text == "You said something." and got.conversation.id == made.id, got
    items = list(client.conversations.items.list(made.id, order="asc", limit=2))
    assert [i.content[0].text for i in items] == ["hello", "what did I say?", "You said something."], items
    assert client.conversations.items.retrieve(items[0].id, conversation_id=made.id).role == "user"
    added = client.conversations.items.create(made.id, items=[{"role": "user", "content": "more"}])
    client.conversations.items.delete(added.data[0].id, conversation_id=made.id)
    assert client.conversations.update(made.id, metadata={"topic": "done"}).metadata == {"topic": "done"}
    assert client.conversations.retrieve(made.id).metadata == {"topic": "done"}
    assert client.conversations.delete(made.id).deleted
    try:
        client.conversations.retrieve(made.id)
        raise AssertionError("a deleted conversation is there")
    except openai.NotFoundError:
        pass


def check_compaction():
    words = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
    small = client.responses.compact(model=model, input=words)
    assert small.object == "response.compaction" and small.output[-1].type == "compaction", small
    again = [item.model_dump(exclude_none=True) for item in small.output]
    got = client.responses.create(model=model, input=[*again, {"role": "user", "content": "what did I say?"}])
    assert got.output_text == "You said something.", got
    assert client.responses.input_tokens.count(model=model, input="one two three").input_tokens >= 3


def check_repeats():
    once = {"extra_headers": {"Idempotency-Key": "one-chat"}, "model": model}
    hi = [{"role": "user", "content": "hi"}]
    first, second = (client.chat.completions.create(messages=hi, **once) for _ in range(2))
    assert first.id == second.id, (first, second)
    once["extra_headers"] = {"Idempotency-Key": "one-response"}
    first, second = (client.responses.create(input="hi", **once) for _ in range(2))
    assert first.id == second.id and second.output_text == "Hello from the model.", (first, second)
    try:
        client.responses.create(input="something else", **once)
        raise AssertionError("another request has the same key")
    except openai.UnprocessableEntityError as e:
        assert e.code == "idempotency_mismatch", e


def check_base_url():
    slash = client.with_options(base_url=sys.argv[1] + "//")
    assert slash.responses.create(model=model, input="hi").output_text == "Hello from the model."
    try:
        client.with_options(base_url=sys.argv[1].removesuffix("/v1")).responses.create(model=model, input="hi")
        raise AssertionError("a base URL without /v1 works")
    except openai.NotFoundError as e:
        assert "did you mean /v1/responses" in e.message, e


def check_files():
    file = client.files.create(file=("hay.txt", io.BytesIO(hay.encode())), purpose="user_data")
    assert file.bytes == len(hay) and file.purpose == "user_data", file
    assert client.files.content(file.id).read() == hay.encode()
    assert file.id in [f.id for f in client.files.list()]
    question = [{"role": "user", "content": [
        {"type": "input_file", "file_id": file.id}, {"type": "input_text", "text": "How many needles?"}]}]
    got = client.responses.create(model=model, input=question, metadata={"rlm_budget_calls": "5"})
    assert got.output_text == "there are 20000 needles", got
    assert [i.type for i in got.output] == ["code_interpreter_call"] * 2 + ["message"], got.output
    assert got.output[0].code == "print(len(context))" and got.output[0].outputs[0].logs == "220000\n"
    client.files.delete(file.id)
    try:
        client.responses.create(model=model, input=question)
        raise AssertionError("a deleted file is there")
    except openai.BadRequestError as e:
        assert e.param == "file_id", e

    data = base64.b64encode(hay.encode()).decode()
    got = client.responses.create(model=model, input=[{"role": "user", "content": [
        {"type": "input_file", "filename": "hay.txt", "file_data": f"data:text/plain;base64,{data}"},
        {"type": "input_text", "text": "How many needles?"}]}])
    assert got.output_text == "there are 20000 needles", got


def check_background():
    made = client.responses.create(model=model, background=True, stream=True, input=[{"role": "user", "content": [
        {"type": "input_text", "text": hay}, {"type": "input_text", "text": "How many needles?"}]}])
    seen = [next(made) for _ in range(4)]
    made.close()
    rest = list(client.responses.retrieve(
        seen[0].response.id, stream=True, starting_after=seen[-1].sequence_number))
    numbers = [e.sequence_number for e in seen + rest]
    assert numbers == list(range(len(numbers))), numbers
    assert rest[-1].type == "response.completed"
    assert rest[-1].response.output_text == "there are 20000 needles"

    slow = client.responses.create(model=model, background=True, input="slow")
    assert slow.status in ("queued", "in_progress"), slow
    assert client.responses.cancel(slow.id).status == "cancelled"
    stuck = client.responses.create(
        model=model, background=True, input="for ever", tools=[{"type": "code_interpreter", "container": {"type": "auto"}}])
    assert client.responses.cancel(stuck.id).status == "cancelled"
    assert client.responses.retrieve(stuck.id).status == "cancelled"


for check in (
    check_models, check_chat, check_structure, check_functions, check_words_beside_functions, check_responses, check_items,
    check_conversations, check_compaction, check_repeats, check_base_url, check_files, check_background,
):
    check()
    print(check.__name__, "works with openai", openai.__version__)
