"""Answer the requests of scripts/bench by another engine.

    native.py sparql|cypher|closure FOLDER

The engines are oxigraph, kuzu and reasonable, by their wheels. A request is a line of JSON:
{"do": "load"}, {"do": "query", "query": …} or {"do": "infer"}. The reply is one with the
seconds that it took, the rows or facts, and the most memory until now in bytes.
"""

import json
import pathlib
import sys
import time


class Oxigraph:
    """A store of RDF in memory."""

    def __init__(self, folder: pathlib.Path):
        import pyoxigraph

        self.file = str(folder / "facts.ttl")
        self.format = pyoxigraph.RdfFormat.N_TRIPLES
        self.store = pyoxigraph.Store()

    def load(self) -> int:
        self.store.bulk_load(path=self.file, format=self.format)
        return len(self.store)

    def query(self, query: str) -> int:
        return len([tuple(row) for row in self.store.query(query)])


class Kuzu:
    """A property graph in memory."""

    def __init__(self, folder: pathlib.Path):
        import kuzu

        self.folder = folder
        self.connection = kuzu.Connection(kuzu.Database(":memory:"))

    def load(self) -> int:
        execute = self.connection.execute
        execute("CREATE NODE TABLE Person(id STRING, name STRING, age INT64, PRIMARY KEY(id))")
        execute("CREATE NODE TABLE City(id STRING, name STRING, population INT64, PRIMARY KEY(id))")
        execute("CREATE REL TABLE LIVES_IN(FROM Person TO City)")
        execute("CREATE REL TABLE KNOWS(FROM Person TO Person)")
        execute("CREATE REL TABLE PART_OF(FROM City TO City)")
        execute("CREATE REL TABLE TWIN_OF(FROM City TO City)")
        for table in ["Person", "City", "LIVES_IN", "KNOWS", "PART_OF", "TWIN_OF"]:
            execute(f"COPY {table} FROM '{self.folder / table}.csv'")
        return execute("MATCH (n) RETURN count(*)").get_next()[0]

    def query(self, query: str) -> int:
        result = self.connection.execute(query)
        rows = []
        while result.has_next():
            rows.append(result.get_next())
        return len(rows)


class Reasonable:
    """A reasoner of OWL 2 RL."""

    def __init__(self, folder: pathlib.Path):
        import reasonable

        self.folder = folder
        self.reasoner = reasonable.PyReasoner()

    def load(self) -> int:
        self.reasoner.load_file(str(self.folder / "facts.ttl"))
        self.reasoner.load_file(str(self.folder / "ontology.ttl"))
        return 0

    def infer(self) -> int:
        return len(self.reasoner.reason())


def most_memory() -> int:
    """Return the most memory that the process has had, in bytes."""
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0


def main() -> None:
    engines = {"sparql": Oxigraph, "cypher": Kuzu, "closure": Reasonable}
    engine = engines[sys.argv[1]](pathlib.Path(sys.argv[2]))
    for line in sys.stdin:
        request = json.loads(line)
        start = time.perf_counter()
        if request["do"] == "query":
            rows = engine.query(request["query"])
        else:
            rows = getattr(engine, request["do"])()
        seconds = time.perf_counter() - start
        reply = {"seconds": seconds, "rows": rows, "memory": most_memory()}
        print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    main()
