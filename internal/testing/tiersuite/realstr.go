package tiersuite

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/testing/skip"
	"github.com/rlmhq/rlm/tiers"
)

// asStr are expressions over a text t that only a real str answers, because C code reads its
// characters. Long results are compared by their hash.
//
//nolint:misspell // Python's names
var asStr = []string{
	// Identity
	"isinstance(t, str)", "type(t).__mro__[-2:] == (str, object)", "hash(t)", "t == plain", "plain == t",
	"t != plain", "t < 'z'", "t >= plain", "'' < t", "t in {plain}", "plain in {t}", "{t: 1}[plain]",
	"sorted([t, 'b', ''], key=len)[1]", "max('a', t) == max('a', plain)", "bool(t)", "len(t)", "t is t[:]",
	"operator.index(len(t))", "isinstance(t, collections.abc.Sequence)",
	// Single characters
	"sum(c.isdigit() for c in t)", "sorted(collections.Counter(t).items())[:50]", "len(set(t))", "min(t), max(t)",
	"''.join(reversed(t))[:40]", "list(t[-40:])", "next(iter(t))", "sum(map(ord, islice(t, 0, None, 1000)))",
	"list(islice(zip(t, t[1:]), 5))", "list(enumerate(t[-10**6:]))[-1]", "any(c == 'N' for c in t)", "[*t[:9]]",
	"t[::-1] == plain[::-1]", "t[::7] == plain[::7]", "tuple(islice(itertools.groupby(t), 3))[0][0]",
	// New strings
	"hash(t * 2)", "hash(t + 'x')", "hash('x' + t)", "hash(f'{t}!')", "hash('%s' % t)", "hash('{}'.format(t))",
	"hash(t.upper())", "hash(t.lower())", "hash(t.title())", "hash(t.casefold())", "hash(t.swapcase())",
	"hash(t.capitalize())", "hash(t.replace('e', 'E'))", "hash(t.translate({101: 'E', 110: None}))",
	"hash(t.expandtabs())", "hash(t.zfill(5))", "hash(t.ljust(10**7, '.'))", "hash(t.center(10**7))",
	"hash(''.join([t[:99], t]))", "hash(','.join(t[:2000]))", "hash(repr(t))", "hash(ascii(t))", "hash(format(t))",
	"hash(t.encode('utf-8', 'surrogateescape'))", "hash(t.encode('utf-16', 'surrogatepass'))",
	"hash(t.encode('ascii', 'replace'))", "len(bytearray(t, 'utf-8', 'replace'))",
	// Properties of the whole string
	"t.isascii()", "t.isprintable()", "t.isalpha()", "t.isspace()", "t.islower()", "t.isupper()",
	"t.isidentifier()",
	"t.isnumeric()", "t.istitle()",
	// Splitting
	"hash(tuple(t.split()))", "hash(tuple(t.split('\\n')))", "hash(tuple(t.splitlines()))",
	"hash(tuple(t.splitlines(True)))", "hash(tuple(t.rsplit(None, 3)))", "hash(tuple(t.rsplit('\\n')))",
	"type(t.split()), type(t.splitlines())", "sorted(t.split())[:9]", "hash(t.strip())", "hash(t.strip('Sel'))",
	"hash(t.rstrip())", "hash(t.partition('NEEDLE'))", "hash(t.rpartition(' '))", "hash(t.removesuffix('line'))",
	"hash(tuple(re.split(r'\\W+', t)))", "hash(tuple(re.findall(r'\\w+', t[:4 * 10**6])))",
	"hash(re.sub(r'[aeiou]', '', t))", "sum(len(m.group()) for m in re.finditer(r'\\d', t[:10**6]))",
	"re.match('.*', t).span()", "re.search('NEEDLE', t).string is t", "re.escape(t[:50])",
	// The standard library
	"hash(json.dumps(t))", "hash(json.dumps({'a': [t]}, ensure_ascii=False))", "json.loads(json.dumps(t)) == plain",
	"hash(unicodedata.normalize('NFD', t))", "unicodedata.is_normalized('NFC', t)",
	"hashlib.sha256(t.encode('utf-8', 'surrogateescape')).hexdigest()", "zlib.crc32(t.encode('utf-8', 'replace'))",
	"len(textwrap.shorten(t[:100000], 50))", "hash(textwrap.dedent(t))", "hash(html.escape(t))",
	"string.Template(t[:1000]).safe_substitute() == plain[:1000]", "io.StringIO(t).read(9)",
	"sum(1 for line in io.StringIO(t))", "hash(tuple(map(tuple, csv.reader(io.StringIO(t[:10**5])))))",
	"len(list(csv.reader(t[:99])))", "difflib.SequenceMatcher(None, t[:200], t[100:300]).ratio()",
	"fnmatch.fnmatch(t, '*NEEDLE*')", "ast.literal_eval(repr(t[:500])) == plain[:500]",
	"hash(urllib.parse.quote(t[:5000], errors='replace'))",
	"pickle.loads(pickle.dumps([t[:2000]])) == [plain[:2000]]",
	"pickle.loads(pickle.dumps(t)) == plain",
	"copy.copy(t) is t, copy.deepcopy([t])[0] is t", "hash(''.join(sorted(t[:2 * 10**6])))", "int(t[:0] or '7')",
	"functools.reduce(lambda n, c: n + 1, t[:1000], 0)", "bisect.bisect(t, 'a', 0, 10)",
	"struct.pack('4s', t[:4].encode())[:1]",
	"str.count(t, 'e'), str.find(t, 'NEEDLE'), str.__len__(t)", "str.__contains__(t, 'NEEDLE')",
	"print(t[:5], file=io.StringIO())", "t.format_map({}) if '{' in t else 0", "t.__sizeof__() >= len(t)",
	// Exceptions
	"t['a']", "t[len(t)]", "t + 5", "t < 5", "t.split('')", "t.index('no such text')", "t.join([1])", "int(t)",
	"t.nosuch", "t[0].nosuch", "t.find(5)", "5 in t", "t.encode('ascii')", "chr(t)", "t * 'x'",
}

// realScript is code that compares the outcomes of expressions on a part of the context and on a
// plain copy.
const realScript = `import ast, bisect, collections, collections.abc, copy, csv, difflib, fnmatch, functools, hashlib
import html, io, itertools, operator, pickle, string, struct, sys, textwrap, unicodedata, urllib.parse, zlib

def outcome(expression, text):
    names = dict(globals(), t=text, plain=plain, islice=itertools.islice, Counter=collections.Counter)
    try:
        return repr(eval(expression, names))
    except MemoryError:
        raise
    except Exception as error:
        return f"raises {type(error).__name__}: {error}"

whole, different = "".join(list(context)), 0
assert type(whole) is str
assert hashlib.sha256(whole.encode("utf-8", "surrogateescape")).hexdigest() == %q
assert not isinstance(context, str) or context == whole and hash(context) == hash(whole)
part, plain = context[-1_500_000:], whole[-1_500_000:]
assert type(part) is type(context)
for expression in json.loads(%q) if isinstance(context, str) else ():
    print(expression, file=sys.stderr)  # the last one is the culprit when time runs out
    got, want = outcome(expression, part), outcome(expression, plain)
    if got != want:
        different += 1
        print(f"{expression}\n    got  {ascii(got)[:300]}\n    want {ascii(want)[:300]}")
print("different:", different)`

// testRealStr compares a long context, and a part that shares its mapping, with a plain str of the
// same characters. It does not run in a tier whose long contexts are not a str.
func (s *suite) testRealStr(t *testing.T) {
	skip.Short(t, "it compares each expression over many texts")
	skip.UnderRace(t)
	for kind, name := range slices.Sorted(maps.Keys(lines)) {
		t.Run(name, func(t *testing.T) {
			s.runParallel(t)
			data := makeText(lines[name], lazy)
			sum := sha256.Sum256(data)
			var half []string // each text tries half of the expressions, which saves a minute
			for i := kind % 2; i < len(asStr); i += 2 {
				half = append(half, asStr[i])
			}
			list, err := json.Marshal(half)
			if err != nil {
				t.Fatal(err)
			}

			in, _ := makeFileInput(t, data)
			box := s.open(t, tiers.Config{Inputs: []tiers.Input{in}, Limits: tiers.Limits{
				Memory: 3 << 30, Output: 1 << 20, Wall: 10 * s.opt.Patience,
			}})
			r := box.run(t, fmt.Sprintf(realScript, hex.EncodeToString(sum[:]), string(list)))
			if r.Status != tiers.StatusOK || !strings.HasSuffix(r.Stdout, "different: 0\n") {
				t.Errorf("the context is not like a str\n%s\n%s", r.Stdout, describe(r))
			}
		})
	}
}

// endsScript is code that uses each context, and parts of it, where CPython's C code expects the
// NUL character that ends every str.
const endsScript = `import binascii
def outcome(use, text):
    try:
        result = use(text)
    except Exception as error:
        return type(error)
    return type(result), hash(bytes(result) if isinstance(result, bytearray) else result)

uses = {
    "int": lambda s: int(s, 16), "float": float, "complex": complex, "float.fromhex": float.fromhex,
    "bytes.fromhex": bytes.fromhex, "bytearray.fromhex": bytearray.fromhex, "unhexlify": binascii.unhexlify,
    "eval": eval, "exec": exec, "compile": lambda s: compile(s, "part", "eval").co_names,
    "encode": lambda s: s.encode(), "utf8": lambda s: s.encode("utf8", "replace"), "bytes": lambda s: bytes(s, "utf-8"),
}
for k, (whole, odd) in enumerate(((context_0, 1_200_001), (context_1, 2_000_001))):
    assert isinstance(whole, str) and len(whole) == %d, len(whole)
    for name, part in ("whole", whole), ("begin", whole[:odd]), ("middle", whole[10:odd]), ("end", whole[odd:]):
        plain = "".join(list(part))
        for use, call in uses.items():
            got, want = outcome(call, part), outcome(call, plain)
            if got != want:
                print(k, name, use, got, want)
part = context_1[:2_500_000]
print(type(part) is type(context_1), bytes.fromhex(context_0)[-1])
print(float(context_1[:2_000_001]), eval(context_1[:2_000_001]))
for _ in range(100):  # what was encoded is freed
    float(context_1[:2_000_001])
print("compared")`

// testPartEnds uses texts that fill their last page, and parts that end within a number.
func (s *suite) testPartEnds(t *testing.T) {
	skip.Short(t, "it compares long parts")
	const size = 9 << 20 // a multiple of any page size
	number := []byte(strings.Repeat(" ", size))
	copy(number[2_000_000:], "11")
	var cfg tiers.Config
	for _, data := range [][]byte{[]byte(strings.Repeat("a", size)), number} {
		in, _ := makeFileInput(t, data)
		cfg.Inputs = append(cfg.Inputs, in)
	}
	cfg.Limits = tiers.Limits{Memory: 512 << 20, Wall: s.opt.Patience}

	box := s.open(t, cfg)
	if r := box.run(t, "print(isinstance(context, str))"); r.Stdout != "True\n" {
		t.Skip("the context is no str in this tier")
	}
	box.mustPrint(t, fmt.Sprintf(endsScript, size), "True 170\n1.0 1\ncompared\n")
}
