# Prints what cpython-tests.sh has collected, as Markdown. The first file is
# expected.txt, the second has a line "@module NAME" before each module's result.
# Exits with 1 if a required module has a failure that was not expected, or any
# module lacks one that was.

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
  was_run[module] = 1
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
    why(module, reason[module, $2])
    known[++knowns] = module " " $2 ": " reason[module, $2] ": " $3
  } else {
    why(module, "**not expected**")
    unknown[++unknowns] = (is_required[module] ? "**required** " : "") module " " $2 ": " $3
    if (is_required[module]) bad = 1
  }
}

function why(module, text) {
  if (!((module, text) in times)) order[module, ++kinds[module]] = text
  times[module, text]++
}

function causes(module,    i, text, all) {
  for (i = 1; i <= kinds[module]; i++) {
    text = order[module, i]
    all = all (i > 1 ? "; " : "") times[module, text] ": " text
  }
  return all
}

END {
  print "| module | run | skipped | failed | seconds | why they fail |"
  print "| --- | ---: | ---: | ---: | ---: | --- |"
  for (i = 1; i <= number; i++) {
    module = modules[i]
    runs += run[module]
    skips += skipped[module]
    fails += failed[module]
    if (failed[module] || is_required[module]) {
      name = is_required[module] ? "**" module "**" : module
      printf "| %s | %s | %s | %s | %s | %s |\n", name, run[module], skipped[module], failed[module], seconds[module], causes(module)
    } else {
      clean = clean (cleans++ ? ", " : "") module " " run[module] (skipped[module] ? "/" skipped[module] : "")
    }
  }
  printf "| %d modules | %d | %d | %d | | |\n", number, runs, skips, fails
  if (cleans) printf "\nWithout a failure, with the tests run/skipped: %s.\n", clean

  if (noted) print "\nMade to load, though CPython would skip all of a module because of:\n"
  for (text in notes) printf "* %s:%s\n", text, notes[text] | "sort"
  close("sort")

  if (knowns) print "\nExpected failures:\n"
  for (i = 1; i <= knowns; i++) print "* " known[i]

  if (unknowns) print "\nFailures that are not expected:\n"
  for (i = 1; i <= unknowns; i++) print "* " unknown[i]

  for (key in reason) {
    split(key, part, SUBSEP)
    if (was_run[part[1]] && !(key in seen)) stale[++stales] = part[1] " " part[2]
  }
  if (stales) print "\nExpected to fail, but did not:\n"
  for (i = 1; i <= stales; i++) print "* " stale[i]
  exit bad || stales > 0
}
