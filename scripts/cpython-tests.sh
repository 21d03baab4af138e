#!/bin/bash
# usage: cpython-tests.sh [LIB [MODULE...]]
#
# Runs CPython's own tests inside the sandbox and compares what fails with
# cpython-tests/expected.txt. LIB is the Lib directory of the Debian source that
# native-python.sh and wasm/build.sh fetch; RLM_CPYTHON_LIB names it too, and
# without either it is looked for where those two keep it. With MODULEs, runs
# these only. RLM_BIN is the command to test, RLM_CPYTHON_LOGS a directory that
# keeps what the tests wrote.
set -euo pipefail

SCRIPTS=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
REPO=$(dirname "$SCRIPTS")
JOBS=2
TIMEOUT=20m

# What must be as expected.txt says, or this script fails.
REQUIRED=(
  test_json test_re test_math test_cmath test_decimal test_datetime test_itertools
  test_collections test_string test_textwrap test_statistics test_dataclasses
  test_typing test_functools
)

# What is run as well.
MORE=(
  test_abc test_abstract_numbers test_argparse test_array test_ast test_asyncgen test_augassign
  test_base64 test_baseexception test_bigmem test_binascii test_binop test_bisect test_bool
  test_builtin test_bytes test_calendar test_call test_charmapcodec test_class test_code
  test_code_module test_codeccallbacks test_codecencodings_cn test_codecencodings_hk
  test_codecencodings_iso2022 test_codecencodings_jp test_codecencodings_kr
  test_codecencodings_tw test_codecs test_codeop test_colorsys test_compare test_compile
  test_complex test_configparser test_contains test_context test_contextlib test_contextlib_async
  test_copy test_copyreg test_coroutines test_csv test_decorators test_defaultdict test_deque
  test_descr test_descrtut test_dict test_dictcomps test_dictviews test_difflib test_dis
  test_doctest test_dynamic test_dynamicclassattribute test_email test_enum test_enumerate
  test_errno test_except_star test_exception_group test_exception_hierarchy
  test_exception_variations test_exceptions test_extcall test_float test_flufl test_fnmatch
  test_format test_fractions test_frame test_fstring test_funcattrs test_future_stmt test_gc
  test_generator_stop test_generators test_genericalias test_genericclass test_genexps
  test_getopt test_global test_grammar test_graphlib test_hash test_hashlib test_heapq test_hmac
  test_html test_htmlparser test_http_cookies test_index test_inspect test_int test_int_literal
  test_ipaddress test_isinstance test_iter test_iterlen test_keyword test_keywordonlyarg
  test_list test_listcomps test_locale test_long test_longexp test_marshal
  test_memoryio test_memoryview test_metaclass test_minidom test_module
  test_multibytecodec test_named_expressions test_numeric_tower test_opcache test_opcodes
  test_operator test_optparse test_ordered_dict test_patma test_peepholer test_pep646_syntax
  test_pickle test_picklebuffer test_pickletools test_platform test_plistlib
  test_positional_only_arg test_pow test_pprint test_print test_property test_pulldom
  test_pyexpat test_quopri test_raise test_random test_range test_reprlib test_richcmp
  test_robotparser test_sax test_sched test_scope test_secrets test_set test_setcomps test_shlex
  test_slice test_sort test_str test_strftime test_stringprep test_strptime
  test_strtod test_struct test_structseq test_subclassinit test_super test_symtable test_syntax
  test_sys test_sys_setprofile test_sys_settrace test_time test_timeit
  test_tokenize test_tomllib test_traceback test_tuple test_type_aliases test_type_annotations
  test_type_comments test_type_params test_typechecks test_types test_ucn
  test_unary test_unicode_identifiers test_unicodedata test_unittest test_unpack test_unpack_ex
  test_unparse test_urlparse test_userdict test_userlist test_userstring test_utf8source
  test_uuid test_warnings test_weakref test_weakset test_with test_xml_dom_minicompat
  test_xml_etree test_xml_etree_c test_yield_from test_zlib test_asyncio.test_context
  test_asyncio.test_eager_task_factory test_asyncio.test_futures test_asyncio.test_futures2
  test_asyncio.test_locks test_asyncio.test_pep492 test_asyncio.test_protocols
  test_asyncio.test_queues test_asyncio.test_runners test_asyncio.test_staggered
  test_asyncio.test_taskgroups test_asyncio.test_tasks test_asyncio.test_threads
  test_asyncio.test_timeouts test_asyncio.test_transports test_asyncio.test_waitfor
)

die() {
  printf 'cpython-tests.sh: %s\n' "$*" >&2
  exit 2
}

# find_lib: the sources that another script fetched.
find_lib() {
  local lib
  for lib in "${XDG_CACHE_HOME:-$HOME/.cache}/rlm/python/src/python/Lib" \
    "${TMPDIR:-/tmp}/rlm-wasm/src/python/Lib"; do
    if [[ -d $lib/test ]]; then
      printf '%s\n' "$lib"
      return
    fi
  done
  die "CPython's sources are not here: run 'make python', or name their Lib directory"
}

# long_text FILE: a context above 8 MiB. It makes the runtime put its own re, csv,
# json and io in place of the stock ones; they are what is tested.
long_text() { head -c 9000000 /dev/zero | tr '\0' 'x' >"$1"; }

# run_one MODULE: leaves its result in LOGS.
run_one() {
  local module=$1 log=$LOGS/$1 status=0
  printf 'module = "%s"\n' "$module" |
    "$RLM" exec --quiet --tier wasm --context "$LIB" --context "$LONG" --timeout "$TIMEOUT" \
      --memory 1GiB --max-output 4MiB - "$SCRIPTS/cpython-tests/driver.py" \
      >"$log.out" 2>"$log.err" || status=$?
  grep -aE '^@(result|fail|note|skip)\b' "$log.out" >"$log.result" ||
    salvage "$module" "$status" >"$log.result"
  printf '%s\n' "$module: $(awk -F '\t' '$1 == "@result" { print $3 " run, " $5 " failed" }' "$log.result")" >&2
}

# salvage MODULE STATUS: a result of what a module said before it broke off. The
# test that ran last is taken to have failed.
salvage() {
  awk -F "\t" -v module="$1" -v status="$2" '
    $1 == "@start" { run++; last = $2 }
    $1 == "@fail" { failed++; fails = fails $0 "\n" }
    { line = $0 }
    END {
      gsub(/\t/, " ", line)
      printf "@result\t%s\t%d\t?\t%d\t-\n%s", module, run, failed + 1, fails
      printf "@fail\t%s\tbroke off: status %d, %s\n", last ? last : "(import)", status, line
    }' "$LOGS/$1.err"
}

run_all() {
  local module
  for module in "$@"; do
    while (($(jobs -rp | wc -l) >= JOBS)); do wait -n; done
    run_one "$module" &
  done
  wait
}

# report MODULE...: the table, and what differs from expected.txt.
report() {
  local module
  for module in "$@"; do
    printf '@module\t%s\n' "$module"
    cat "$LOGS/$module.result"
  done | LC_ALL=C awk -v required="${REQUIRED[*]}" -f "$SCRIPTS/cpython-tests/report.awk" \
    "$SCRIPTS/cpython-tests/expected.txt" -
}

main() {
  if [[ ${1-} == -* ]]; then
    sed -n '2,/^[^#]/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
    exit 2
  fi
  LIB=${1:-${RLM_CPYTHON_LIB:-$(find_lib)}}
  [[ -d $LIB/test ]] || die "$LIB has no tests: it is not a Lib directory of CPython's sources"
  shift "$(($# > 0))"
  RLM=${RLM_BIN:-$REPO/bin/rlm}
  [[ -x $RLM ]] || make -C "$REPO" build >&2
  WORK=$(mktemp -d "${TMPDIR:-/tmp}/rlm-cpython-tests.XXXXXX")
  trap 'rm -rf "$WORK"' EXIT
  LOGS=${RLM_CPYTHON_LOGS:-$WORK}
  mkdir -p "$LOGS"
  LONG=$WORK/long.txt
  long_text "$LONG"
  [[ $# -gt 0 ]] || set -- "${REQUIRED[@]}" "${MORE[@]}"
  run_all "$@"
  report "$@"
}

main "$@"
