#!/bin/bash
# usage: govulncheck.sh GOVULNCHECK [PACKAGE...]
#
# Looks for known vulnerabilities in the code that the packages call. The database is
# https://vuln.go.dev, or the one that GOVULNDB names.
#
# Exit codes: 0 none is known; 3 the output names some; 75 no result, as the database is
# out of reach; 1 any other failure.
set -euo pipefail

main() {
  local check=$1 said code=0
  shift
  said=$(mktemp)
  # shellcheck disable=SC2064 # the file's name is known now
  trap "rm -f '$said'" EXIT

  "$check" ${GOVULNDB:+-db "$GOVULNDB"} "${@:-./...}" 2> >(tee "$said" >&2) || code=$?
  if [[ $code -eq 1 ]] && grep -q '^govulncheck: fetching vulnerabilities: ' "$said"; then
    echo "govulncheck: NO RESULT: the database ${GOVULNDB:-https://vuln.go.dev} is out of reach; GOVULNDB names another"
    return 75
  fi
  return "$code"
}

main "$@"
