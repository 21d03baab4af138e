"""Asks DuckDB the queries that a test asks rlm.

    judge.py FOLDER        reads queries.json, a list of a file and a query of the table t each, and
                           prints a list of their rows, or of null where DuckDB raises an error"""

import datetime
import decimal
import json
import math
import sys

import duckdb


def simplify(value):
    if isinstance(value, decimal.Decimal):
        return float(value) if value % 1 else int(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, (datetime.date, datetime.time)):
        return str(value)
    return value


def ask(folder, file, query):
    connection = duckdb.connect()
    try:
        connection.execute(f"create view t as select * from read_csv('{folder}/{file}')")
        rows = connection.execute(query).fetchall()
    except duckdb.Error:
        return None
    return [[simplify(value) for value in row] for row in rows]


if __name__ == "__main__":
    with open(f"{sys.argv[1]}/queries.json", encoding="utf-8") as queries:
        print(json.dumps([ask(sys.argv[1], *one) for one in json.load(queries)]))
