import asyncio
import json

text, now, log, graph, echo = await asyncio.gather(
    filesystem.read_text_file(path=PATH + "/words.txt"),
    time_server.get_current_time(timezone="UTC"),
    git.git_log(repo_path=PATH + "/repo", max_count=1),
    memory.create_entities(entities=[{"name": "Ann", "entityType": "person", "observations": ["counts"]}]),
    everything.echo(message="hello"),
)
words = text["content"] if isinstance(text, dict) else text
now = now if isinstance(now, dict) else json.loads(now)
assert words.split() == ["one", "two"], text
assert now["timezone"] == "UTC", now
assert "the first commit" in str(log), log
assert "Ann" in str(graph), graph
assert "hello" in str(echo), echo
print("five real servers answer one snippet")
