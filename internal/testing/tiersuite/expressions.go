package tiersuite

import (
	"fmt"
	"slices"
)

// group is a set of expressions that are evaluated on a huge handle t of N characters, and on an
// equal str.
type group struct {
	name  string
	exprs []string
}

// expressions returns all groups. Regular expressions over megabytes are slow in the guest's own
// re, so there are several groups of them.
//
// Expressions that take the guest seconds on megabytes are tried on only one kind of text, in turn.
// kind is the number of the text's kind, and one in kinds of the slow expressions is tried.
func expressions(kind, kinds int) []group {
	groups := []group{
		{"Indexing", indexing()},
		{"Slicing", slicing()},
		{"Searching", searching},
		{"Stripping", stripping},
		{"Errors", wrongUses},
		{"Splitting", pickInTurn(splitting, kind, kinds)},
		{"RegexFlags", pickInTurn(regexFlags, kind, kinds)},
		{"RegexWrite", pickInTurn(regexWrite, kind, kinds)},
		{"RegexCalls", pickInTurn(regexCalls, kind, kinds)},
		{"RegexBounds", pickInTurn(slices.Concat(regexBounds, regexReach), kind, kinds)},
	}

	for part := range slices.Chunk(patterns, 15) {
		g := group{name: fmt.Sprintf("Regex%d", len(groups)-9)}
		for _, p := range pickInTurn(part, kind, kinds) {
			g.exprs = append(g.exprs, fmt.Sprintf("list(islice(re.finditer(%s, t), 200))", pyRaw(p)))
		}
		groups = append(groups, g)
	}

	return groups
}

// pickInTurn returns every kinds-th element of all, starting at number kind.
func pickInTurn[T any](all []T, kind, kinds int) []T {
	var picked []T
	for i := kind; i < len(all); i += kinds {
		picked = append(picked, all[i])
	}
	return picked
}

func indexing() []string {
	exprs := []string{
		"len(t)", "bool(t)", "t == t", "t[N // 2]", "t[True]", "t.index('NEEDLE')",
		"t[t.find('NEEDLE')]", "hash(t) == hash(t)", "t != t", "t == 'x'", "t == t[:]",
	}
	for _, i := range []string{
		"0", "1", "-1", "-2", "N - 1", "N", "-N", "-N - 1", "N // 3", "8191",
		"8192", "8193", "4194303", "10 ** 30", "-10 ** 30", "1 << 31", "(1 << 32) + 1",
	} {
		exprs = append(exprs, "t["+i+"]", "t[N // 2:][:5]", "t["+i+":][:7]", "t[:"+i+"][-7:]")
	}
	return exprs
}

func slicing() []string {
	bounds := []string{"", "0", "5", "-5", "N - 5", "N + 5", "-N - 5", "N // 2", "N // 2 + 100"}
	var exprs []string
	for _, a := range bounds {
		for _, b := range bounds {
			exprs = append(exprs, fmt.Sprintf("t[%s:%s][:50]", a, b), fmt.Sprintf("t[%s:%s][-50:]", a, b))
		}
	}

	return append(exprs, "t[100:200:3]", "t[200:100:-1]", "t[200:100:-7]", "t[:100:2]", "t[-100::5]",
		"t[::-1][:50]", "t[::N // 10]", "t[::-(N // 10)]", "t[50:50:-1]",
		"t[N // 2:N // 2 + 100:1]", "t[5:-5][5:-5][:10]", "t[slice(3, 9)]", "t[10:20].upper()",
		"t[:1000] + t[1000:2000] == t[:2000]", "t[7:3]", "t[N:]", "t[:0]", "t[None:None:None] == t")
}

var searching = []string{
	"'NEEDLE' in t", "'' in t", "'absent text' in t", "t[-10:] in t", "'λ' in t", "'\\n' in t",
	"'\\udc80' in t", "'\\ud83d' in t", "'\\x00' in t", "'é' in t",
	"t.find('NEEDLE')", "t.find('')", "t.find('', 5)", "t.find('', N)", "t.find('', N + 1)", "t.find('absent')",
	"t.find(t[1000:1100])", "t.find('\\n')", "t.find('\\n', 1000)", "t.find('e', -100)",
	"t.find('e', 5, 4)", "t.find('e', 0, 3)", "t.find('e', 10, -10)", "t.find('NEEDLE', 0, t.index('NEEDLE') + 5)",
	"t.find('NEEDLE', 0, t.index('NEEDLE') + 6)", "t.find('NEEDLE', t.index('NEEDLE'))",
	"t.find('NEEDLE', t.index('NEEDLE') + 1)",
	"t.find('e', None, None)", "t.find('e', -10 ** 30, 10 ** 30)", "t.find('\\udcff')", "t.find('\\udcc3(')",
	"t.find('é')", "t.find('😀')", "t.find('👩')", "t.find('\\u0301')", "t.find('世界')",
	"t.rfind('NEEDLE')", "t.rfind('row')", "t.rfind('')", "t.rfind('', 0, 10)", "t.rfind('absent')",
	"t.rfind('e', 0, 1000)", "t.rfind('e', -1000, -500)", "t.rfind('\\n')", "t.rfind('é')", "t.rfind('\\udc80')",
	"t.index('row', 2000)", "t.rindex('row', 0, 100000)", "t.index('absent')", "t.rindex('absent')",
	"t.count('e')", "t.count('row')", "t.count('aa')", "t.count('')", "t.count('', 5, 10)", "t.count('', N)",
	"t.count('', N + 1)", "t.count('\\n')", "t.count('é')", "t.count('e', 1000, 2000)", "t.count('e', -1000)",
	"t.count('absent')", "t.count('\\n\\n')", "t.count('\\udcff')", "t.count('\\udced\\udca0\\udc80')",
	"t.startswith('The')", "t.startswith('Stra')", "t.startswith('')", "t.startswith(('x', 'valid', 'S', 'T'))",
	"t.startswith(())", "t.startswith('quick', 4)", "t.startswith('quick', 4, 8)", "t.startswith('', N)",
	"t.startswith('', N + 1)", "t.startswith(t[:100])",
	"t.endswith('newline')", "t.endswith('')", "t.endswith(('a', 'line'))", "t.endswith('new', 0, -4)",
	"t.endswith('new', N - 6, -4)", "t.endswith('', N + 1)", "t.endswith(t[-200:])",
	"t.removeprefix('The ')[:10]", "t.removesuffix('newline')[-10:]", "t.removeprefix('absent')[:10]",
	"[t.partition('NEEDLE')[i][-20:] for i in range(3)]", "[t.rpartition('row')[i][:20] for i in range(3)]",
	"t.partition('absent')[1:]", "t.rpartition('absent')[:2]",
}

var splitting = []string{
	"list(t.split('\\n'))", "list(t.split('row '))", "list(t.split())", "t.split()[:20]", "t.split()[-5:]",
	"len(t.split())", "len(t.split('e'))", "t.split(', ')[3]", "t.split('absent') == [t]", "list(t.split('\\n\\n'))",
	"list(t.split('é'))[:50]", "list(t.split('\\u2003'))[:9]", "[p[:30] for p in t.split('\\n', 3)]",
	"[p[:30] for p in t.split('row', 2)]", "[p[:30] for p in t.split(None, 4)]",
	"[p[:30] for p in t.split(maxsplit=2)]", "[p[-30:] for p in t.rsplit('\\n', 3)]",
	"[p[-30:] for p in t.rsplit(None, 3)]", "t.rsplit(None, 0)[0][:30]", "(t[:9] + ' ').rsplit(None, 10 ** 6)",
	"[p[:30] for p in t.split('x', 0)]",
	"Counter(t.split()).most_common(9)", "list(Counter(t.split()).items())[:50]", "Counter(t[1000:300000].split())",
	"Counter(t.splitlines()).total()", "Counter(t.split('row ')).most_common(3)", "Counter(t.split()[:70000]).total()",
	"Counter(t.splitlines(True)).most_common(3)",
	"list((Counter(['row', 'x']) | Counter(t.split())).items())[:9]", "Counter(iter(t.split())).total()",
	"list(t.splitlines())", "list(t.splitlines(True))", "list(t.splitlines(keepends=True))[5]",
	"t.splitlines()[0]", "t.splitlines()[-1]", "t.splitlines()[10:15]", "t.splitlines()[::-1][:5]",
	"len(t.splitlines())", "t.splitlines()[1000:1003]", "len(t[1000:2000].splitlines())",
	"sum(1 for _ in t.split('\\n'))", "max(map(len, t.split('\\n')))",
	"[w for w in t.split()[:1000] if w.isupper()]", "'row' in t.split()", "t.split('\\n').count('')",
	"t.split('\\n').index('')", "sorted(t.split()[:50])", "list(enumerate(t.split('\\n')))[7]",
	"len(t[N // 2:].split())", "t[5:-5].split()[0]", "t[3:].splitlines()[0]",
}

var stripping = []string{
	"t.strip()[:20]", "t.strip()[-20:]", "len(t.strip())", "t.strip('T')[:5]", "len(t.lstrip('The '))",
	"t.rstrip('enilw')[-9:]", "len(t.rstrip('\\n'))", "len(t.strip('ThSeva'))", "t.lstrip()[:5]",
	"t[:50].upper()", "t[:50].lower()", "t[:50].title()", "t[:100].encode('utf-8', 'surrogateescape')",
	"list(t[:100])", "[ord(c) for c in t[-100:]]", "t[:1000].isascii()", "t[:50] + 'x'", "t[:20] * 2",
	"t[:20].join('ab')", "t[:200].replace('e', 'E')",
}

// patterns are regular expressions whose first matches are compared. Some have an equivalent in
// RE2. Others do not, such as backreferences, lookaround, conditionals, possessive and atomic
// groups.
var patterns = []string{
	`NEEDLE`, `row \d+`, `\d{4}-\d\d-\d\d`, `(\w+)@(\w+)`, `id=(\w+)`, `(?P<k>\w+)=(?P<v>\d+)`,
	`price \$(\d+)\.(\d+)`, `[A-Z]{3,}`, `\bfox\b`, `\bмир\b`, `\w+ё\w*`, `\b\w{12,}\b`, `[а-яё]+`,
	`[\u4e00-\u9fff]+`, `[^\x00-\x7f]+`,
	`é`, `.é`, `😀|👩`, `\s{2,}`, `\S{40,}`, `^row`, `\Arow`, `newline$`, `newline\Z`, `^$`, `x*?row`,
	`(a)|(e)`, `(?:quick|brown) (?:fox|cat)?`, `"[^"]*"`, `\d+(?:\.\d+)?%`, `(?i)needle`, `(?m)^row \d+`,
	`(?m)e$`, `(?s)NEEDLE.*newline`, `NEEDLE.*newline`,
	`(\w)\1{2}`, `(["'])x\1`, `(?<=row )\d+00`, `(?<!\d)404(?!\d)`, `row (?=\d{4})`, `\d++,`, `(?>\d+),é`,
	`(é)?(?(1),|row)`, `[\udc80-\udcff]+`, `\udcff`, `\x00`, `\x1c|\x85|\u2028`, `\d+`, `[\W_]{6,}`,
	`\B-\B`, `^\s*$`, `[[:alpha:]]`, `\t`, `ſ|İ|ǆ`, `٣`, `\d٤`,
}

var regexCalls = []string{
	`re.search('NEEDLE', t)`, `re.search(r'row (?P<n>\d{4,})', t)`, `re.search(r'(?<=row )\d+00', t)`,
	`re.search('absent text', t)`, `re.search('', t)`,
	`re.match('The|Stra|valid', t)`, `re.match('row', t)`, `re.fullmatch('.', t)`,
	`re.fullmatch('(?s).*', t) is not None`,
	`re.findall(r'row \d+', t)`, `re.findall(r'(row) (\d+)', t)[-9:]`, `re.findall(r'(?:row) (\d+)', t)[-9:]`,
	`re.findall('(a)|(e)', t)[:99]`, `re.findall('x*', t[:500])`, `len(re.findall('e', t))`,
	`re.findall(r'(\w)\1\1', t)[:99]`, `re.findall(r'\bNEEDLE\b.*', t)`,
	`sum(1 for _ in re.finditer('row', t))`, `[m.span() for m in re.finditer('NEEDLE|line', t)][-3:]`,
	`list(re.finditer('(?P<a>NEE)(?P<b>x)?', t))`,
}

// regexBounds are expressions that use pos and endpos of re, and patterns that depend on the
// surrounding characters.
var regexBounds = []string{
	`re.compile('row').search(t, -5)`, `re.compile('row').search(t, 0, -5)`, `re.compile('e').findall(t, -5, -1)`,
	`re.compile('').search(t, -5, -1)`, `re.compile('.').match(t, -3)`, `re.compile('row').search(t, None)`,
	`re.compile('row').search(t, 0, None)`,
	`re.compile('').search(t, 50, 10)`, `re.compile('').findall(t, 50, 10)`, `re.compile('').match(t, 50, 10)`,
	`re.compile('').fullmatch(t, 50, 10)`, `re.compile('$').match(t, 50, 10)`, `re.compile(r'\b').match(t, 3, 1)`,
	`re.compile(r'\b').match(t, 3, 0)`, `re.compile(r'\B').search(t, 0, 0)`, `re.compile(r'\B').match(t, 0, 0)`,
	`re.compile('x*').search(t, N + 9)`, `re.compile('x*').fullmatch(t, N + 9)`, `re.compile('.?').match(t, N)`,
	`re.compile('.').match(t, N)`, `re.compile('.').match(t, N - 1)`, `re.compile('$').match(t, N - 1)`,
	`re.compile('(?<=row) ').match(t, t.index('row ') + 3)`,
	`re.compile('(?<=row) ').search(t, t.index('row ') + 3)`,
	`re.compile('(?<!row) ').match(t, t.index('row ') + 3)`,
	`re.compile('(?<!row) ').search(t, t.index('row ') + 3)`,
	`re.compile('(?s)(?<=row) .').search(t, t.index('row ') + 3)`, `re.compile('(?<=(?<=^.).).').search(t[:], 2)`,
	`re.compile(r'^.').match(t, 3)`, `re.compile(r'\A.').match(t, 3)`,
	`re.compile(r'(?m)^.').match(t, t.find('\n') + 1)`, `re.compile(r'(?m)^.').match(t, 3)`,
	`re.compile(r'\B.(\w+)?').match(t, 1)`, `re.compile(r'\b.').match(t, 1)`,
	`re.compile(r'.+$').match(t, t.find('\n') - 3)`, `re.compile(r'.+$').match(t, 3, t.find('\n') + 1)`,
	`re.compile(r'.+\Z').match(t, 3, t.find('\n') + 1)`,
	`re.compile('.*').fullmatch(t, 3, 9)`, `re.fullmatch('.*', t)`, `re.fullmatch(r'(\w).*\1', t)`,
	`re.match('(a)|(.)(.)', t)`, `re.split('row', t, maxsplit=-1) == [t]`, `re.match('(?s).{5000}', t)`,
	`re.fullmatch('(?s).{5000}', t)`, `re.match('(?s)(?:.{100}){100}', t)`,
}

// regexReach are patterns with long matches or long lookaround.
var regexReach = []string{
	`re.match('(?s).*line', t).end()`, `re.match('(?s).*?NEEDLE', t).end()`, `re.search('(?s).*?NEEDLE', t).end()`,
	`re.match('(?s)(?=.*NEEDLE).', t)`, `re.search('(?s)(?=.*NEEDLE).', t)`, `re.match('(?s)(?!.*NEEDLE).', t)`,
	`re.match(r'(?:[^,]+,){999}', t).end()`, `re.search(r'(?:[^,]+,){999}', t).end()`,
	`re.match('(?s)(?:.{1000}){3000}', t).end()`, `re.search('(?s)(?:.{1000}){3000}', t).end()`,
	`re.match(r'(?s).*row\b', t).end()`, `re.match(r'(?s)(?:.*)(e)\1?', t).span(1)`,
	`re.fullmatch('(?s).*', t).end()`, `re.fullmatch(r'(?s).*(\w).*\1?', t).span(1)`,
	`re.match(r'(?s).*NEEDLE\b.*absent', t)`, `re.search('(?s)(?<=row)(?=.{2000000})', t)`,
	`re.search('(?s)(?<=row)(?!.{2000000})', t)`, `re.match('(?s)(?:.|x)*line(?!s)', t).end()`,
}

var regexFlags = []string{
	"re.findall('needle', t, re.I)", "re.findall('NEEDLE', t, re.IGNORECASE | re.M)",
	"re.findall('^row', t, re.M)[:99]", "re.findall('straße|привет', t, re.I)[:50]",
	"re.findall(r'\\w+', t, re.A)[:999]", "re.findall(r'\\bcaf\\b', t, re.A)[:9]", "re.findall(r'\\bcaf\\b', t)[:9]",
	"re.findall('r o w # comment', t, re.X)[:9]", "re.findall('ſ', t, re.I)[:99]", "re.findall('k', t, re.I)[:99]",
	"re.findall('.', t[:500], re.S)", "re.findall('a.b', t, re.DOTALL)[:9]",
	"re.compile('NEEDLE (at)').search(t)", "re.compile('row').findall(t)[:9]", "re.compile('row').search(t, 500)",
	"re.compile('row').search(t, 500, 510)", "re.compile('row').match(t, t.index('row'))",
	"re.compile('^row').search(t, t.index('row'))", "re.compile('row$').search(t, 0, t.index('row') + 3)",
	"re.compile(r'\\brow').findall(t, 0, 5000)", "[m.span() for m in re.compile('row').finditer(t, 100, 9000)]",
	"re.compile('row').fullmatch(t, t.index('row'), t.index('row') + 3)", "re.search('NEEDLE', t).string == t",
	"re.search('(N)(E)', t).expand(r'\\2\\1')", "re.search('(?P<x>NEE)', t)['x']", "re.search('row', t[1000:])",
	"re.findall('e', t[N // 2:N // 2 + 1000])", "bool(re.search('absent text', t))",
}

var regexWrite = []string{
	"re.sub('row', 'ROW', t)[:2000]", "re.sub(r'row (\\d+)', r'<\\1>', t)[-3000:]",
	"re.sub('e', lambda m: m[0].upper(), t, count=50)[:3000]", "re.subn('NEEDLE', 'found', t)[1]",
	"re.sub('absent', 'x', t) == t", "re.sub('x*', '-', t[:100])",
	"len(re.split(r'\\n', t))", "re.split(r'row (\\d+)', t)[1]", "[p[:20] for p in re.split('row', t, maxsplit=3)]",
	"re.split('absent', t) == [t]", "len(re.split(r'[,;]\\s*', t))", "re.split(r'(\\n)', t)[:9]",
	"t.replace('NEEDLE', 'x')[-40:]", "t.replace('e', '', 3)[:50]", "t.upper()[:50]", "t.lower()[-50:]",
	"t.translate({101: 'E'})[:50]", "t.encode('utf-8', 'surrogateescape')[:50]", "t.isascii()",
	"(t + '!')[-9:]", "('!' + t)[:9]", "t.casefold()[:20]", "t.expandtabs()[:200]",
}

var wrongUses = []string{
	"t['x']", "t[1.5]", "t[None]", "t[::0]", "t['a':]", "5 in t", "None in t", "t.find(5)", "t.find()",
	"t.index(None)", "t.count(b'e')", "t.split('')", "t.split(5)", "t.startswith(5)", "t.endswith(['a'])",
	"t.strip(5)", "t.nope", "t.partition('')",
	"re.search('(', t)", "re.findall(b'x', t)", "re.search(5, t)", "t + 5", "5 + t", "t < 5", "-t", "t()",
	"t @ 2", "t.find('a', 'b')", "t.count('a', 1.5)", "t.encode('no-such')", "setattr(t, 'x', 1)",
	"t.__setitem__(0, 'x')", "re.sub('(', 'x', t)", "t.join([1])",
}

// pyRaw returns a pattern as a Python raw string. No pattern contains three quotes in a row, so
// triple quotes suffice.
func pyRaw(p string) string { return "r'''" + p + "'''" }
