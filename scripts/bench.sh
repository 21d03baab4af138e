#!/usr/bin/env bash
# Measures: every Go benchmark, then the tables of docs/reference/performance.md.
#   BENCH=table scripts/bench.sh    the tables alone
#   BENCH=docker scripts/bench.sh   the table of tier docker alone
#   BENCH=engine scripts/bench.sh   the table of sessions through rlm.New alone
#     RLM_BENCH_SIZE=1GiB           the size of the text whose words it counts; without it, 16 MiB
#   BENCH=loops scripts/bench.sh    the table of the loop alone
#   BENCH=durable scripts/bench.sh  the table of runs and sessions that last alone
#   BENCH=serve scripts/bench.sh    the table of rlm serve alone
#   BENCH=serve-peers scripts/bench.sh  rlm serve beside other servers alone; it needs python3
#   BENCH=viewer scripts/bench.sh   the table of the viewer of runs alone; it needs Chromium
#   BENCH=texts scripts/bench.sh    the table of operations on a long context alone
#     RLM_BENCH_SIZE=1GiB           the size of that context; without it, 16 MiB
#     RLM_BENCH_TEXTS=FILE          another text as that context
#   BENCH=graph scripts/bench.sh    the table of graphs beside other engines alone; it needs python3
#   BENCH=documents scripts/bench.sh  the text of PDFs beside other tools alone; it needs python3
#   BENCH=tables scripts/bench.sh   rows of tables, and SQL beside DuckDB, alone; it needs python3
#     RLM_BENCH_SIZE=1GiB           the size of the table in CSV; without it, 64 MiB
#     RLM_BENCH_CASES="gzip|sql"    the readings that match this alone
#   BENCH=mcp scripts/bench.sh      calls of MCP tools beside the official client, and a thousand tools
#   BENCH=wasm scripts/bench.sh     the engines of tier wasm beside native CPython alone
#   BENCH=hashes scripts/bench.sh   hashlib and zlib in these engines beside native CPython alone
#   BENCH=peers scripts/bench.sh    the table of the README alone; it needs Docker, Node and npm
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

case ${BENCH:-all} in
docker | embed | loops | durable | serve | viewer) exec scripts/run.sh bench -only "$BENCH" ;;
serve-peers) exec "$(scripts/venv.sh serve-peers | tail -n 1)" scripts/serve-peers/measure.py bin/rlm ;;
mcp) exec go test ./mcp/tools -run '^$' -bench . -benchtime 300x ;;
graph | documents) exec scripts/run.sh bench -only "$BENCH" -python "$(scripts/venv.sh "$BENCH" | tail -n 1)" ;;
esac

cache=${XDG_CACHE_HOME:-$HOME/.cache}/rlm
text=${RLM_BENCH_TEXT:-$cache/bench-1GiB.txt}
python=${RLM_PYTHON:-}

if [[ -z $python ]]; then
	python=$(scripts/native-python.sh "$cache/python" | tail -n 1)
fi
if [[ ${BENCH:-all} == wasm || ${BENCH:-all} == hashes ]]; then
	exec scripts/run.sh bench -only "$BENCH" -python "$python" -rlm bin/rlm
fi
if [[ ${BENCH:-all} == tables ]]; then
	bytes=${RLM_BENCH_SIZE:-64MiB}
	exec scripts/run.sh bench -only tables -python "$python" -rlm bin/rlm \
		-duckdb "$(scripts/venv.sh tables | tail -n 1)" -table-size "$(numfmt --from=iec-i "${bytes%B}")" \
		-cases "${RLM_BENCH_CASES:-}"
fi
# make_text SIZE FILE writes the corpus, unless an earlier run has.
make_text() {
	[[ -s $2 ]] && return
	mkdir -p "$(dirname "$2")"
	scripts/run.sh corpus -bytes "$1" -seed 1 -o "$2.part"
	mv "$2.part" "$2"
}

size=${RLM_BENCH_SIZE:-16MiB}
texts=${RLM_BENCH_TEXTS:-$cache/bench-$size.txt}
make_text "$size" "$texts"
if [[ ${BENCH:-all} == texts || ${BENCH:-all} == engine ]]; then
	exec scripts/run.sh bench -only "$BENCH" -python "$python" -texts "$texts"
fi
make_text 1GiB "$text"
if [[ ${BENCH:-all} == peers ]]; then
	pyodide=$cache/pyodide-314.0.7
	npm install --silent --no-audit --no-fund --prefix "$pyodide" pyodide@314.0.7
	exec scripts/run.sh bench -only peers -python "$python" -text "$text" -pyodide "$pyodide"
fi
if [[ ${BENCH:-all} != table ]]; then
	go test -run '^$' -bench . -benchmem ./...
	go test -C scripts -run '^$' -bench . -benchmem ./...
fi
scripts/run.sh bench -python "$python" -text "$text" -texts "$texts" -rlm bin/rlm
echo
scripts/run.sh corpustable
