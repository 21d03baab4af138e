import asyncio
import json

text, now, log, graph, echo, rows = await asyncio.gather(
    filesystem.read_text_file(path=PATH + "/words.txt"),
    time_server.get_current_time(timezone="UTC"),
    git.git_log(repo_path=PATH + "/repo", max_count=1),
    memory.create_entities(entities=[{"name": "Ann", "entityType": "person", "observations": ["counts"]}]),
    everything.echo(message="hello"),
    sqlite.read_query(query="SELECT 6 * 7 AS answer"),
)
words = text["content"] if isinstance(text, dict) else text
now = now if isinstance(now, dict) else json.loads(now)
assert words.split() == ["one", "two"], text
assert now["timezone"] == "UTC", now
assert "the first commit" in str(log), log
assert "Ann" in str(graph), graph
assert "hello" in str(echo), echo
assert "42" in str(rows), rows
print("six real servers answer one snippet")
