"""Asks rlm serve what the compliance suite of Open Responses asks, and checks each answer and
event by the models of the specification (openresponses-types). usage: openresponses.py ADDRESS"""

import base64
import json
import struct
import sys
import urllib.request
import zlib

import pydantic
from openresponses_types import types

address = sys.argv[1] + "/responses"
events = {
    f"response.{kind}": getattr(types, f"Response{name}StreamingEvent")
    for kind, name in {
        "created": "Created", "queued": "Queued", "in_progress": "InProgress", "completed": "Completed",
        "failed": "Failed", "incomplete": "Incomplete", "output_item.added": "OutputItemAdded",
        "output_item.done": "OutputItemDone", "content_part.added": "ContentPartAdded",
        "content_part.done": "ContentPartDone", "output_text.delta": "OutputTextDelta",
        "output_text.done": "OutputTextDone", "function_call_arguments.delta": "FunctionCallArgumentsDelta",
        "function_call_arguments.done": "FunctionCallArgumentsDone",
    }.items()
}
weather = {
    "type": "function", "name": "get_weather", "description": "Tells the weather of a place.",
    "parameters": {"type": "object", "properties": {"location": {"type": "string"}}, "required": ["location"]},
}


def user(content):
    return {"type": "message", "role": "user", "content": content}


def post(**body):
    data = json.dumps({"model": "rlm/default", **body}).encode()
    request = urllib.request.Request(address, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        return answer.read().decode()


def check(text):
    """Returns a response whose form is right."""
    types.ResponseResource.model_validate_json(text, strict=True)
    return json.loads(text)


def ask(**body):
    got = check(post(**body))
    assert got["status"] == "completed" and got["output"], got
    return got


def stream(**body):
    """Returns the events of a streamed response, and the response at its end."""
    seen = []
    *blocks, last, rest = post(stream=True, **body).split("\n\n")
    assert last == "data: [DONE]" and not rest, last
    for block in blocks:
        name, _, data = block.partition("\n")
        event = json.loads(data.removeprefix("data: "))
        assert name == "event: " + event["type"], block
        events[event["type"]].model_validate_json(data.removeprefix("data: "), strict=True)
        seen.append(event)
    assert [e["sequence_number"] for e in seen] == list(range(len(seen)))
    assert seen[0]["type"] == "response.created" and seen[-1]["type"] == "response.completed", seen
    return seen, check(json.dumps(seen[-1]["response"]))


def kinds(got):
    return [item["type"] for item in got["output"]]


def basic():
    got = ask(input=[user("Say hello in three words.")], temperature=0.5, metadata={"a": "b"})
    assert kinds(got) == ["message"] and got["temperature"] == 0.5 and got["metadata"] == {"a": "b"}


def streaming():
    seen, got = stream(input=[user("Count from 1 to 5.")])
    text = "".join(e["delta"] for e in seen if e["type"] == "response.output_text.delta")
    assert text == got["output"][0]["content"][0]["text"] != "", got


def system_prompt():
    ask(input=[{"type": "message", "role": "system", "content": "Speak like a pirate."}, user("Say hello.")])


def tool_calling():
    got = ask(input=[user("What is the weather like in San Francisco?")], tools=[weather])
    assert kinds(got) == ["function_call"] and got["tools"][0]["name"] == "get_weather", got
    assert json.loads(got["output"][0]["arguments"]) == {"location": "San Francisco"}


def tool_calling_streaming():
    seen, got = stream(input=[user("What is the weather like in San Francisco?")], tools=[weather])
    assert kinds(got) == ["function_call"], got
    of_call = [e["type"].removeprefix("response.") for e in seen if e.get("output_index") == 0]
    assert of_call == [
        "output_item.added", "function_call_arguments.delta", "function_call_arguments.done", "output_item.done",
    ], of_call


def round_trip():
    choice = {"type": "function", "name": "get_weather"}
    first = ask(input="Use the tool: what is the weather in San Francisco?", tools=[weather], tool_choice=choice)
    assert first["tool_choice"] == choice, first
    ask(previous_response_id=first["id"], input=[{
        "type": "function_call_output", "call_id": first["output"][0]["call_id"], "output": "64 degrees and clear"}])


def image_input():
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    png = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)) + chunk(
        b"IDAT", zlib.compress(b"\0\xff\0\0")) + chunk(b"IEND", b"")
    ask(input=[user([
        {"type": "input_text", "text": "What do you see?"},
        {"type": "input_image", "image_url": "data:image/png;base64," + base64.b64encode(png).decode()}])])


def file_input():
    page = b"BT\n/F1 12 Tf\n72 72 Td\n(Title: Fixture) Tj\nET\n"
    pdf = b"%PDF-1.1\n" + b"".join(b"%d 0 obj\n%s\nendobj\n" % pair for pair in enumerate([
        b"<< /Type /Catalog /Pages 2 0 R >>", b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 144] /Contents 4 0 R"
        b" /Resources << /Font << /F1 5 0 R >> >> >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(page), page),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"], 1)) + b"trailer\n<< /Root 1 0 R >>\n%%EOF"
    got = ask(input=[user([
        {"type": "input_text", "text": "Answer with the title of the file only."},
        {"type": "input_file", "filename": "fixture.pdf",
         "file_data": "data:application/pdf;base64," + base64.b64encode(pdf).decode()}])])
    assert got["output"][0]["content"][0]["text"] == "Fixture", got


def multi_turn():
    ask(input=[user("My name is Alice."), {"type": "message", "role": "assistant", "content": "Hello Alice!"},
               user("What is my name?")])


def previous_response_id():
    first = ask(input="Remember the word papaya.")
    assert ask(previous_response_id=first["id"], input="Which word?")["previous_response_id"] == first["id"]


for case in (basic, streaming, system_prompt, tool_calling, tool_calling_streaming, round_trip, image_input,
             file_input, multi_turn, previous_response_id):
    case()
print("the cases of Open Responses pass with pydantic", pydantic.VERSION)
