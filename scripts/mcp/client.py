"""Uses rlm mcp as a host would, with the official SDK of Python. usage: client.py RLM SERVERS ADDRESS

ADDRESS is that of rlm serve. All checks run at the same time, with the newest generation of the
protocol and with the earlier ones."""

import asyncio
import sys

from mcp import Client, StdioServerParameters
from mcp.types import ElicitResult

RLM, SERVERS, ADDRESS = sys.argv[1:4]


def value(result):
    """The structured content of a result that is no error."""
    assert not result.is_error, result
    return result.structured_content


async def decide(context, params):
    """Allows the first call of echo, and denies the second."""
    assert "everything__echo" in params.message, params
    return ElicitResult(action="accept", content={"allow": "yes please" in params.message})


async def use(session):
    names = [tool.name for tool in (await session.list_tools()).tools]
    assert {"rlm_open", "rlm_exec", "rlm_files", "rlm_close"} <= set(names), names

    lines = []

    async def note(progress, total, message):
        lines.append(message)

    code = "import time\nfor i in range(3):\n    print(i, flush=True)\n    time.sleep(0.2)\n6 * 7"
    got = value(await session.call_tool("rlm_exec", {"source": code}, progress_callback=note))
    assert got["stdout"] == "0\n1\n2\n42\n" and "1" in lines, (got, lines)

    handle = value(await session.call_tool("rlm_open", {"contexts": [{"text": "one\ntwo"}]}))["session"]
    got = value(await session.call_tool("rlm_exec", {
        "session": handle, "source": "n = len(context.splitlines()); FINAL({'lines': n})"}))
    assert got["value"] == {"lines": 2}, got
    record = await session.read_resource("rlm://runs/" + got["run"])
    assert "splitlines" in record.contents[0].text

    failed = await session.call_tool("rlm_exec", {"session": handle, "source": "n / 0"})
    assert failed.is_error and "ZeroDivisionError" in failed.content[0].text, failed
    assert failed.structured_content["exception"]["type"] == "ZeroDivisionError"

    # A call that is taken back frees its handle, whose variables stay.
    endless = asyncio.create_task(session.call_tool("rlm_exec", {"session": handle, "source": "while True: pass"}))
    await asyncio.sleep(0.5)
    endless.cancel()
    await asyncio.gather(endless, return_exceptions=True)
    got = value(await session.call_tool("rlm_exec", {"session": handle, "source": "n"}))
    assert got["stdout"] == "2\n", got
    value(await session.call_tool("rlm_close", {"session": handle}))


async def use_gateway(session):
    found = value(await session.call_tool("rlm_search_tools", {"query": "echo back", "limit": 1}))
    assert found["tools"][0]["name"] == "everything.echo", found
    code = ("print(everything.echo(message='yes please'))\n"
            "try:\n    everything.echo(message='no')\nexcept Exception as e:\n    print(e)")
    got = value(await session.call_tool("rlm_exec", {"source": code}))
    assert "yes please" in got["stdout"] and "has denied it" in got["stdout"], got


async def use_served(session):
    await use(session)
    handle = value(await session.call_tool("rlm_open", {"contexts": [{"text": "a needle\n" * 2000}]}))["session"]
    got = value(await session.call_tool("rlm_ask", {"session": handle, "question": "how many needles?"}))
    assert got["answer"] == "there are 2000 needles", got
    record = await session.read_resource("rlm://runs/" + got["run"])
    assert "how many needles?" in record.contents[0].text


async def check(server, use, mode, **options):
    """Connects to a server with a generation of the protocol, and uses it."""
    async with Client(server, mode=mode, **options) as client:
        assert (client.protocol_version >= "2026-07-28") == (mode != "legacy"), client.protocol_version
        await use(client)


async def main():
    plain = StdioServerParameters(command=RLM, args=["mcp", "--quiet"])
    gateway = StdioServerParameters(
        command=RLM, args=["mcp", "--quiet", "--mcp", SERVERS, "--approve", "ask everything__echo"])
    server = await asyncio.create_subprocess_exec(
        RLM, "mcp", "--http", "127.0.0.1:0", stderr=asyncio.subprocess.PIPE)
    try:
        address = (await server.stderr.readline()).decode().split()[-1]
        await asyncio.gather(*(one for mode in ("auto", "legacy") for one in (
            check(plain, use, mode),
            # A gateway starts its servers first, for which "auto" may not wait.
            check(gateway, use_gateway, "2026-07-28" if mode == "auto" else mode, elicitation_callback=decide),
            check(address, use, mode),
            check(ADDRESS + "/mcp", use_served, mode),
        )))
    finally:
        server.terminate()
        await server.wait()


asyncio.run(main())
print("the Python SDK works over stdio and HTTP, and with rlm serve, in both generations")
