"""Makes a table, and reads it as Python's own modules and DuckDB do.

    rows.py make FOLDER BYTES      writes rows.csv, and the same rows as rows.jsonl
    rows.py WHAT FOLDER            prints a line of JSON: the seconds, and the result"""

import json
import os
import random
import sys
import time

COLUMNS = "id,time,user,city,amount,status,note".split(",")


BLOCK = 32 << 20  # bytes of CSV, after which the rows repeat: more random ones would take long to make


def make(folder, size):
    """Writes a block of rows, and copies of it until the table has its size."""
    copies = -(-size // BLOCK)
    make_block(folder, size // copies)
    for name, header in ("rows.csv", ",".join(COLUMNS) + "\r\n"), ("rows.jsonl", ""):
        with open(f"{folder}/{name}", "rb+") as file:
            block = file.read()[len(header):]
            for _ in range(copies - 1):
                file.write(block)


def make_block(folder, size):
    r = random.Random(1)
    cities = ["Berlin", "Köln", "New York", "Paris", "São Paulo"]
    notes = ["plain", "with, comma", 'with "quotes"', "a longer note without anything", "two\nlines"]
    with open(f"{folder}/rows.csv", "w", newline="", encoding="utf-8") as table, open(
        f"{folder}/rows.jsonl", "w", encoding="utf-8"
    ) as lines:
        import csv

        rows = csv.writer(table)
        rows.writerow(COLUMNS)
        for n in range(sys.maxsize):
            row = [n, f"2026-03-{r.randint(1, 28):02}T{r.randint(0, 23):02}:00:00", f"user{r.randint(0, 9999)}",
                   r.choice(cities), r.randint(0, 99999) / 100, r.choice(["ok", "ok", "error"]), r.choice(notes)]
            rows.writerow(row)
            lines.write(json.dumps(dict(zip(COLUMNS, row)), ensure_ascii=False) + "\n")
            if n % 1000 == 0 and table.tell() >= size:
                break


def read_json_lines(folder):
    with open(f"{folder}/rows.jsonl", encoding="utf-8") as lines:
        return sum(row["id"] for row in map(json.loads, lines))


def count_lines(folder):
    with open(f"{folder}/rows.csv", newline="", encoding="utf-8") as lines:
        return sum(1 for line in lines)


def read_dicts(folder):
    import csv

    with open(f"{folder}/rows.csv", newline="", encoding="utf-8") as lines:
        return sum(len(row["city"]) for row in csv.DictReader(lines))


def read_lists(folder):
    import csv

    with open(f"{folder}/rows.csv", newline="", encoding="utf-8") as lines:
        return sum(len(row[3]) for row in csv.reader(lines))


QUERY = "select city, count(*) n, sum(amount) total, max(time) last from {} group by city order by city"


def group(folder):
    import duckdb

    rows = duckdb.connect().execute(QUERY.format(f"read_csv('{folder}/rows.csv')")).fetchall()
    return [[city, n, round(total), str(last)[:10]] for city, n, total, last in rows]


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(sys.argv[2], int(sys.argv[3]))
    else:
        begun = time.perf_counter()
        result = globals()[sys.argv[1]](sys.argv[2])
        print(json.dumps({"seconds": time.perf_counter() - begun, "result": result}))
