#!/usr/bin/env bash
# usage: suites.sh
#
# Makes the archives in scripts/checks/graphtruth/testdata anew: the W3C's tests of SPARQL
# from rdflib's source package (PyPI), its tests of OWL 2 from the OWL API's (Debian), and
# openCypher's TCK (Maven Central). Each must have the digest below.
set -euo pipefail

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source-path=SCRIPTDIR source=../wasm/lib.sh
source "$here/../wasm/lib.sh"

TESTDATA=$here/../checks/graphtruth/testdata
RDFLIB=rdflib==7.6.0
TCK=org.opencypher:tck:1.0.0-M23

# check HASH FILE...: the files of this pattern are one, and it has this digest.
check() {
  [[ $# -eq 2 ]] || die "not one file: ${*:2}"
  sha256sum --check --quiet <<<"$1  $2"
}

# pack NAME FOLDER FILE...: an archive that depends on nothing but the files' content.
pack() {
  tar --create --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=a=rX,u+w \
    --directory "$2" "${@:3}" | zstd -19 --quiet --force -o "$TESTDATA/$1.tar.zst"
}

pack_sparql() {
  (cd "$WORK" && pip download --quiet --no-deps --no-binary :all: "$RDFLIB")
  check 6c831288d5e4a5a7ece85d0ccde9877d512a3d0f02d7c06455d00d6d0ea379df "$WORK"/rdflib-*.tar.gz
  mkdir "$WORK/rdflib"
  tar --extract --gzip --file "$WORK"/rdflib-*.tar.gz --directory "$WORK/rdflib" --strip-components=1
  pack sparql "$WORK/rdflib/test/data/suites/w3c" dawg-data-r2 sparql11
}

pack_owl() {
  mkdir -p "$WORK/inputs"
  apt_root
  (cd "$WORK/inputs" && quiet "$WORK/logs/owlapi.log" private_apt source --download-only --tar-only owlapi/trixie)
  mkdir "$WORK/owlapi"
  tar --extract --file "$WORK"/inputs/owlapi_*.orig.tar.* --directory "$WORK/owlapi" --strip-components=1
  check e9fefd83a0d20774a7b7b2411b3ded6696af9ff1a7ac3fedc72524e417224d9c \
    "$WORK/owlapi/contract/src/test/resources/all.rdf"
  pack owl "$WORK/owlapi/contract/src/test/resources" all.rdf
}

pack_tck() {
  mvn --quiet --batch-mode org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy \
    "-Dartifact=$TCK" "-DoutputDirectory=$WORK/tck"
  check 7edc3f7b1fb612feac47285157d67345a2dfaa2791ad83b6ba1699c7f4635a21 "$WORK"/tck/tck-*.jar
  mkdir "$WORK/tck/files"
  (cd "$WORK/tck/files" && jar --extract --file "$WORK"/tck/tck-*.jar features graphs)
  pack tck "$WORK/tck/files" features graphs
}

main() {
  need_tools apt-get jar mvn pip sha256sum tar zstd
  [[ -e $KEYRING ]] || die "$KEYRING is missing (package debian-archive-keyring)"
  WORK=$(mktemp -d)
  trap 'rm -rf "$WORK"' EXIT
  pack_sparql
  pack_owl
  pack_tck
}

main "$@"
