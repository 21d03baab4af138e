# Prints what cpython-tests.sh has collected. The first file is expected.txt, the
# second has a line "@module NAME" before each module's result. Exits with 1 if a
# required module has a failure that was not expected, or any an expected failure
# that did not come.

BEGIN {
  FS = "\t"
  count = split(required, names, " ")
  for (i = 1; i <= count; i++) is_required[names[i]] = 1
}

# expected.txt: module, id, reason.
NR == FNR {
  if ($0 !~ /^#/ && NF == 3) reason[$1, $2] = $3
  next
}

$1 == "@module" {
  module = $2
  modules[++number] = module
}

$1 == "@result" {
  run[module] = $3
  skipped[module] = $4
  failed[module] = $5
  seconds[module] = $6
}

$1 == "@note" { notes[$2] = notes[$2] " " module; noted = 1 }

$1 == "@fail" {
  seen[module, $2] = 1
  if ((module, $2) in reason) {
    known[module]++
    causes[reason[module, $2]]++
  } else {
    unknown[++unknowns] = sprintf("%s%s %s\n    %s", is_required[module] ? "required: " : "", module, $2, $3)
    if (is_required[module]) bad = 1
  }
}

END {
  format = "%-34s %7s %8s %7s %9s %8s\n"
  printf format, "module", "run", "skipped", "failed", "expected", "seconds"
  for (i = 1; i <= number; i++) {
    module = modules[i]
    was_run[module] = 1
    printf format, module (is_required[module] ? " *" : ""), run[module], skipped[module], failed[module], known[module] + 0, seconds[module]
    runs += run[module]
    skips += skipped[module]
    fails += failed[module]
    knowns += known[module]
  }
  printf format, "all", runs, skips, fails, knowns + 0, ""
  print "\n* required"

  if (noted) print "\nMade to load, though CPython would skip them as a whole:"
  for (text in notes) printf "  %s:%s\n", text, notes[text] | "sort"
  close("sort")

  print "\nExpected failures:"
  for (text in causes) printf "%6d  %s\n", causes[text], text | "sort -rn"
  close("sort -rn")

  if (unknowns) print "\nFailures that are not expected:"
  for (i = 1; i <= unknowns; i++) print "  " unknown[i]

  for (key in reason) {
    split(key, part, SUBSEP)
    if (was_run[part[1]] && !(key in seen)) stale[++stales] = part[1] " " part[2]
  }
  if (stales) print "\nExpected to fail, but did not:"
  for (i = 1; i <= stales; i++) print "  " stale[i]
  exit bad || stales > 0
}
