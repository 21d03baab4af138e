"""Answer queries by other engines, for a comparison.

    native.py FOLDER

The folder has facts.ttl with queries.rq, and graph.json with queries.cypher. rdflib answers
the first over what follows by owlrl, kuzu the second. The answers are printed as JSON, an
error as its text.
"""

import json
import pathlib
import sys

import kuzu
import owlrl
import rdflib

TYPES = {str: "STRING", int: "INT64", float: "DOUBLE", bool: "BOOL"}


def read_queries(path: pathlib.Path) -> list[str]:
    """Return the queries of a file, which empty lines separate."""
    return path.read_text().strip().split("\n\n")


def answer_sparql(folder: pathlib.Path) -> list:
    """Return an answer in the W3C's JSON format, or N-Triples, for each query."""
    graph = rdflib.Graph()
    graph.parse(folder / "facts.ttl")
    prefixes = dict(graph.namespaces())
    owlrl.DeductiveClosure(owlrl.OWLRL_Semantics).expand(graph)

    answers = []
    for query in read_queries(folder / "queries.rq"):
        result = graph.query(query, initNs=prefixes)
        form = "nt" if result.type == "CONSTRUCT" else "json"
        text = result.serialize(format=form).decode()
        answers.append(text if form == "nt" else json.loads(text))
    return answers


def make_tables(connection: kuzu.Connection, graph: dict) -> None:
    """Make the tables that kuzu needs and fill them."""
    labels = {node["id"]: node["label"] for node in graph["nodes"]}
    for label in dict.fromkeys(labels.values()):
        nodes = [node for node in graph["nodes"] if node["label"] == label]
        columns = column_types(node["properties"] for node in nodes)
        fields = "".join(f", {name} {kind}" for name, kind in columns.items())
        connection.execute(f"CREATE NODE TABLE {label}(id STRING{fields}, PRIMARY KEY(id))")
        sets = "".join(f", {name}: row.{name}" for name in columns)
        rows = [{"id": n["id"], **fill(n["properties"], columns)} for n in nodes]
        connection.execute(f"UNWIND $rows AS row CREATE (:{label} {{id: row.id{sets}}})", {"rows": rows})

    ends = {}
    for edge in graph["edges"]:
        ends.setdefault((edge["type"], labels[edge["from"]], labels[edge["to"]]), []).append(edge)
    for (kind, start, end), edges in ends.items():
        columns = column_types(edge["properties"] for edge in edges)
        fields = "".join(f", {name} {kind}" for name, kind in columns.items())
        connection.execute(f"CREATE REL TABLE {kind}(FROM {start} TO {end}{fields})")
        sets = ", ".join(f"{name}: row.{name}" for name in columns)
        rows = [{"a": e["from"], "b": e["to"], **fill(e["properties"], columns)} for e in edges]
        connection.execute(
            f"UNWIND $rows AS row MATCH (a:{start} {{id: row.a}}), (b:{end} {{id: row.b}}) "
            f"CREATE (a)-[:{kind} {{{sets}}}]->(b)",
            {"rows": rows},
        )


def column_types(all_properties) -> dict[str, str]:
    """Return the type of each property."""
    columns = {}
    for properties in all_properties:
        for name, value in properties.items():
            columns[name] = TYPES[type(value)]
    return columns


def fill(properties: dict, columns: dict) -> dict:
    """Return properties with None for those that are missing."""
    return {name: properties.get(name) for name in columns}


def answer_cypher(folder: pathlib.Path) -> list:
    """Return columns and rows, or an error, for each query."""
    graph = json.loads((folder / "graph.json").read_text())
    connection = kuzu.Connection(kuzu.Database(":memory:"))
    make_tables(connection, graph)

    answers = []
    for query in read_queries(folder / "queries.cypher"):
        used = {name: value for name, value in graph["parameters"].items() if f"${name}" in query}
        try:
            result = connection.execute(query, used)
            rows = []
            while result.has_next():
                rows.append(result.get_next())
            answers.append({"columns": result.get_column_names(), "rows": rows})
        except RuntimeError as error:
            answers.append({"error": str(error)})
    return answers


if __name__ == "__main__":
    FOLDER = pathlib.Path(sys.argv[1])
    ANSWERS = {"sparql": answer_sparql(FOLDER), "cypher": answer_cypher(FOLDER)}
    json.dump(ANSWERS, sys.stdout, default=float)  # kuzu sums to a Decimal
