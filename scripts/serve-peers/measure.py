"""Compares rlm serve with other servers, and prints a table.

    usage: measure.py RLM

A snippet in a live session and the first one of a new session are compared with Jupyter Kernel
Gateway, and a short chat completion with LiteLLM's proxy. One Python client asks all of them, in
turns, over connections that stay. The model is a server that answers at once.
"""

import http.client
import json
import os
import pathlib
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import websocket

ROUNDS = 200
STARTS = 10
ANSWER = {
    "id": "a", "object": "chat.completion", "created": 1, "model": "fake",
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Hello."}}],
    "usage": {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12},
}
QUESTION = {"messages": [{"role": "user", "content": "Say hello."}], "max_tokens": 10}


class Model(BaseHTTPRequestHandler):
    """Has one model, which answers every request with the same chat completion."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self):
        self.reply({"id": "gpt-5-mini", "object": "model", "created": 1, "owned_by": "nobody"})

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.reply(ANSWER)

    def reply(self, answer):
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Client:
    """Posts JSON over one connection."""

    def __init__(self, port):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)

    def post(self, path, body, headers=()):
        self.connection.request(
            "POST", path, json.dumps(body), {"Content-Type": "application/json", **dict(headers)}
        )
        reply = self.connection.getresponse()
        text = reply.read()
        if reply.status >= 300:
            raise RuntimeError(f"{path}: {reply.status} {text[:500]}")
        return json.loads(text)


class Kernel:
    """A kernel of Jupyter Kernel Gateway."""

    def __init__(self, port):
        kernel = Client(port).post("/api/kernels", {"name": "python3"})
        self.socket = websocket.create_connection(
            f"ws://127.0.0.1:{port}/api/kernels/{kernel['id']}/channels",
            timeout=120,
            sockopt=[(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)],
        )

    def run(self):
        asked = uuid.uuid4().hex
        header = {
            "msg_id": asked, "username": "", "session": "bench", "msg_type": "execute_request",
            "version": "5.3",
        }
        content = {"code": "print(1 + 1)", "silent": False}
        self.socket.send(json.dumps({
            "header": header, "parent_header": {}, "metadata": {}, "content": content, "channel": "shell",
        }))
        output, is_idle, has_reply = "", False, False
        while not (is_idle and has_reply):
            message = json.loads(self.socket.recv())
            if message["parent_header"].get("msg_id") != asked:
                continue
            kind, content = message["msg_type"], message["content"]
            output += content["text"] if kind == "stream" else ""
            is_idle |= kind == "status" and content["execution_state"] == "idle"
            has_reply |= kind == "execute_reply"
        assert output == "2\n", output


class Session:
    """A session of rlm serve."""

    def __init__(self, port):
        self.client = Client(port)
        self.path = f"/v1/sessions/{self.client.post('/v1/sessions', {})['id']}/exec"

    def run(self):
        result = self.client.post(self.path, {"source": "print(1 + 1)"})
        assert result["stdout"] == "2\n", result


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def await_port(port, process, log):
    for _ in range(1200):
        if process.poll() is not None:
            raise RuntimeError(f"a server has ended: {log.read_text()[-2000:]}")
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError(f"no server at port {port}")


def median(times):
    return statistics.median(times) * 1000


def timed(action):
    begun = time.perf_counter()
    action()
    return time.perf_counter() - begun


def compare(ours, theirs, rounds):
    """Returns the medians of two actions, which take turns, in milliseconds."""
    for _ in range(3):
        ours()
        theirs()
    pairs = [(timed(ours), timed(theirs)) for _ in range(rounds)]
    return median(p[0] for p in pairs), median(p[1] for p in pairs)


def main(rlm):
    model = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    child = os.fork()  # a process of its own, which does not wait for the client's turn
    if child == 0:
        model.serve_forever()
    base = f"http://127.0.0.1:{model.server_port}/v1"
    os.environ.update(
        OPENAI_BASE_URL=base, OPENAI_API_KEY="none", LITELLM_LOCAL_MODEL_COST_MAP="True",
        LITELLM_TELEMETRY="False", DO_NOT_TRACK="1",
        LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY="true", NO_PROXY="127.0.0.1",
    )

    with tempfile.TemporaryDirectory() as name:
        folder, started, ports = pathlib.Path(name), [], {}
        (folder / "litellm.yaml").write_text(json.dumps({"model_list": [{
            "model_name": "fake",
            "litellm_params": {"model": "openai/fake", "api_base": base, "api_key": "none"},
        }]}))
        scripts = pathlib.Path(sys.executable).parent
        try:
            for server, command in {
                "rlm": [rlm, "serve", "--listen", "127.0.0.1:PORT", "--data", folder / "data",
                        "--model", "openai/gpt-5-mini"],
                "gateway": [scripts / "jupyter-kernelgateway", "--KernelGatewayApp.ip=127.0.0.1",
                            "--KernelGatewayApp.port=PORT"],
                "litellm": [scripts / "litellm", "--config", folder / "litellm.yaml",
                            "--host", "127.0.0.1", "--port", "PORT"],
            }.items():
                ports[server] = port = free_port()
                log = folder / f"{server}.log"
                with log.open("w") as out:
                    process = subprocess.Popen(
                        [str(word).replace("PORT", str(port)) for word in command],
                        stdout=out, stderr=out, cwd=folder,
                    )
                started.append(process)
                await_port(port, process, log)
            rows = list(measure(ports))
        finally:
            for process in started:
                process.terminate()
            for process in started:
                process.wait()
            os.kill(child, signal.SIGKILL)

    print("| what | rlm serve | peer | ratio |\n| --- | --- | --- | --- |")
    for what, peer, (ours, theirs) in rows:
        print(f"| {what} | {ours:.2f} ms | {peer}: {theirs:.2f} ms | {ours / theirs:.2f} x |")


def measure(ports):
    session, kernel = Session(ports["rlm"]), Kernel(ports["gateway"])
    yield "`print(1 + 1)` in a live session, median", "Jupyter Kernel Gateway", compare(
        session.run, kernel.run, ROUNDS
    )
    yield "a new session and its first snippet, median", "Jupyter Kernel Gateway", compare(
        lambda: Session(ports["rlm"]).run(), lambda: Kernel(ports["gateway"]).run(), STARTS
    )
    ours, theirs = Client(ports["rlm"]), Client(ports["litellm"])
    yield "a short chat completion, with a model that answers at once, median", "LiteLLM's proxy", compare(
        lambda: ours.post("/v1/chat/completions", {"model": "rlm/default", **QUESTION}),
        lambda: theirs.post("/v1/chat/completions", {"model": "fake", **QUESTION}),
        ROUNDS,
    )


if __name__ == "__main__":
    main(os.path.abspath(sys.argv[1]))
