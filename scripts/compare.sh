#!/usr/bin/env bash
# Asks the same questions of a text of 1 GiB in the sandbox and in native CPython,
# then questions of a sparse file of 10 GiB whose answers are known. Prints a
# table; any difference fails. CPython needs 8 GiB of memory for it.
#   RLM_BENCH_TEXT      the text; without it one is made and kept
#   RLM_PYTHON          the native CPython; without it one is built and kept
#   RLM_COMPARE_SPARSE  the size of the sparse file, 10G, or 0 for none
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

make -s build # the program under test is the one of this tree
cache=${XDG_CACHE_HOME:-$HOME/.cache}/rlm
text=${RLM_BENCH_TEXT:-$cache/bench-1GiB.txt}
python=${RLM_PYTHON:-}
sparse=${RLM_COMPARE_SPARSE:-10G}
work=$(mktemp -d "${TMPDIR:-/tmp}/rlm-compare.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

# table FILE shows lines of name, milliseconds here, milliseconds of CPython,
# answer here, expected answer; it fails if two answers differ.
table() {
	awk -F '\t' '
		BEGIN { printf "%9s %9s  %-5s %s\n", "rlm ms", "other ms", "", "question" }
		{
			same = NF == 5 && $4 == $5
			printf "%9s %9s  %-5s %s\n", $2, $3, same ? "same" : "DIFF", $1
			if (!same) { printf "%28s %s\n%28s %s\n", "rlm:", $4, "expected:", $5; bad++ }
		}
		END { printf "%d questions, %d differ\n", NR, bad; exit bad || !NR }' "$1"
}

# sandbox CODE TEXT... runs CODE in the sandbox. A failure is one more line, so
# that it counts as a difference.
sandbox() {
	local code=$1 path contexts=()
	shift
	for path; do contexts+=(--context "$path"); done
	bin/rlm exec --quiet --timeout 1h --max-output 16MiB "${contexts[@]}" "$code" || echo "rlm failed: $?"
}

# compare_large compares with CPython. Names must be equal too, or the line
# gets a sixth field and so counts as different.
compare_large() {
	local -a texts=("$text" "$work/jsonl")
	"$python" -I scripts/compare/native.py --jsonl "$text" >"$work/jsonl"
	sandbox scripts/compare/questions.py "${texts[@]}" >"$work/here"
	"$python" -I scripts/compare/native.py scripts/compare/questions.py "${texts[@]}" >"$work/there"
	paste "$work/here" "$work/there" | awk -F '\t' -v OFS='\t' '{
		print $1, $2, $5, $3, $6 ($1 == $4 && NF == 6 ? "" : OFS "another question: " $4) }' >"$work/both"
	table "$work/both"
}

# compare_sparse compares with what is known of a file that was made from two
# texts with zeros between them.
compare_sparse() {
	sed -n '1,5000p;5000q' "$text" >"$work/head"
	tail -n 5000 "$text" >"$work/tail"
	cp "$work/head" "$work/sparse"
	truncate -s "$sparse" "$work/sparse"
	cat "$work/tail" >>"$work/sparse"
	sandbox scripts/compare/sparse.py "$work/sparse" "$work/head" "$work/tail" >"$work/here"
	awk -F '\t' -v OFS='\t' '{ print $1, $2, "-", $3, $4 }' "$work/here" >"$work/both"
	table "$work/both"
}

if [[ -z $python ]]; then
	python=$(scripts/native-python.sh "$cache/python" | tail -n 1)
fi
if [[ ! -s $text ]]; then
	mkdir -p "$(dirname "$text")"
	scripts/run.sh corpus -bytes 1GiB -seed 1 -o "$text"
fi
failed=0
echo "--- the same questions in rlm and in CPython: $(wc -c <"$text") bytes"
compare_large || failed=1
if [[ $sparse != 0 ]]; then
	echo "--- known answers: a sparse file of $sparse"
	compare_sparse || failed=1
fi
exit "$failed"
