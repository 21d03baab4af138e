//go:build linux && (amd64 || arm64)

package main

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// expressions are forms of an expression, by the letter of its kind: i for integer, f for float, s
// for string, b for bytes, l for a list of integers, and d for a dictionary from strings to
// integers. @k stands for an expression of kind k.
var expressions = map[byte][]string{
	'i': {
		"(@i + @i)", "(@i - @i)", "(@i * @i)", "(@i // @i)",
		"(@i % @i)", "(@i & @i)", "(@i ^ @i)", "(@i | @i)",
		"(@i << (@i % 70))", "(@i >> (@i % 70))", "(@i % 90) ** (@i % 12)",
		"-@i", "~@i", "abs(@i)", "int(@f)",
		"len(@s)", "len(@l)", "len(@d)", "sum(@l)",
		"max(@l)", "min(@l, default=@i)", "@l[@i % 5]", "@d[@s]",
		"@d.get(@s, @i)", "@s.find(@s)", "@s.count(@s)",
		"int(@s)", "hash(@s) % 97", "ord(@s[0])", "@b[@i % 9]",
		"(@i if @i > @i else @i)", "(@i or @i)", "int(@i == @i)",
		"int(@s < @s)", "int(@f <= @i)", "round(@f)",
		"int.from_bytes(@b, 'little')", "@i.bit_length()",
		"math.gcd(@i, @i)", "math.isqrt(@i)", "pow(@i, 5, @i)",
		"zlib.crc32(@b)", "help1(@i, @i)",
		"Box(@i).twice", "functools.reduce(lambda a, b: a * 3 ^ b, @l, @i)",
		"bisect.bisect(@l, @i)", "(lambda x, y=@i: x - y)(@i)",
		"len(set(@l) & set(@l))", "int(@i in @l)",
	},
	'f': {
		"(@f + @f)", "(@f - @f)", "(@f * @f)", "(@f / @f)",
		"(@f % @f)", "(@f // @f)", "(@f ** 2)", "float(@i)",
		"(@i / @i)", "math.sqrt(@f)", "math.sin(@f)",
		"math.exp(@f)", "math.log(@f)", "math.fmod(@f, @f)", "abs(@f)",
		"round(@f, 2)", "math.hypot(@f, @f)",
		"float(@s)", "math.floor(@f) + @f", "math.fsum([@f, @f, @f])",
		"statistics.fmean([@f, @f])", "float(decimal.Decimal(@i) / 7)",
		"max(@f, @f)", "math.atan2(@f, @f)",
	},
	's': {
		"(@s + @s)", "(@s * (@i % 4))", "str(@i)", "repr(@f)",
		"repr(@l)", "repr(@d)", "@s.upper()", "@s[::-1]",
		"@s[@i % 3:@i % 9]", "@s.replace(@s, @s)",
		"' '.join(map(str, @l))", "f'{@i:>8x}|{@f:.3e}|{@s!r:^9}'", "'%d-%s' % (@i, @s)",
		"@s.title()", "@s.strip('a ')",
		"re.sub(r'[a-e]+|(\\d)', r'<\\1>', @s)", "chr(@i % 0x3000 + 32)", "@s.zfill(7)",
		"@b.hex()", "@b.decode('latin-1')",
		"json.dumps([@i, @f, @s])", "unicodedata.normalize('NFD', @s)", "@s.casefold()",
		"hashlib.md5(@b).hexdigest()[:8]", "type(@i).__name__",
		"textwrap.shorten(@s, 9)", "'{:,}'.format(@i)", "ascii(@s)",
		"str(fractions.Fraction(@i, 12))", "str(Box(@i))",
		"''.join(sorted(@s))", "max(@s, @s)", "next(iter(@s), @s)",
	},
	'b': {
		"@s.encode()", "(@b + @b)",
		"@b[::-1]", "bytes(v % 256 for v in @l)", "(@i % 9999).to_bytes(4, 'big')",
		"struct.pack('<qd', @i, @f)", "zlib.compress(@b)",
		"zlib.decompress(zlib.compress(@b))", "bytes(bytearray(@b)[1:])",
		"hashlib.sha256(@b).digest()", "base64.b64encode(@b)",
		"@b.replace(b'a', @b)", "memoryview(@b)[:5].tobytes()",
	},
	'l': {
		"[@i, @i, @i]", "(@l + @l)", "(@l * (@i % 3))",
		"sorted(@l)", "sorted(@l, key=lambda v: -v % 13)", "@l[::-1]",
		"[v * @i for v in @l]", "[v for v in @l if v % 3]",
		"list(range(@i % 20))", "[ord(c) for c in @s]", "list(@d.values())",
		"list(map(abs, @l))", "[a + b for a, b in zip(@l, @l)]",
		"list(itertools.accumulate(@l))", "list(pairs(@l))",
		"list(dict.fromkeys(@l))", "heapq.nsmallest(3, @l)", "copy.copy(@l)",
		"list(@b)", "@l[@i:@i:2]", "[*@l, *@l]",
		"json.loads(json.dumps(@l))",
		"list(collections.deque(@l, maxlen=4))", "[int(m) for m in re.findall(r'\\d+', @s)]",
	},
	'd': {
		"{@s: @i, @s: @i}", "{**@d, **@d}",
		"{str(v): v for v in @l}", "dict(collections.Counter(@s))", "@d | @d",
		"{k: v for k, v in @d.items() if v}", "dict(sorted(@d.items()))",
		"{k[:1]: @i for k in @d}", "vars(Box(@i))",
	},
}

// leaves are the values that end an expression.
var leaves = map[byte][]string{
	'i': {"0", "1", "-1", "2", "7", "10", "255", "-256", "(1 << 31)", "(1 << 63)", "10**25", "True", "65536"},
	'f': {"0.0", "-0.0", "0.5", "1.1", "-2.75", "1e16", "1e-300", "1e308", "float('inf')", "float('nan')", "3.0"},
	's': {"''", "'a'", "'abc abd'", "'12'", "'-7'", "'Zürich'", "'中文'", "'😀x'", "'1.5'", "'a,b\\n\"c\"'"},
	'b': {"b''", "b'a'", "b'\\x00\\xff'", "b'hello world' * 3"},
	'l': {"[]", "[3, 1, 2]", "[0] * 5", "[5, -5, 10**12]"},
	'd': {"{}", "{'a': 1}", "{'b': 2, '12': 3}"},
}

const kinds = "ifsbld"

// prelude is the beginning of each session.
const prelude = `import base64, bisect, collections, copy, decimal, fractions, functools, hashlib, heapq, itertools
import json, math, re, statistics, struct, textwrap, unicodedata, zlib
class Box:
    def __init__(self, n): self.n = n
    @property
    def twice(self): return self.n * 2
    def __repr__(self): return f"Box({self.n!r})"
    def __eq__(self, other): return self.n == other.n
    def __lt__(self, other): return self.n < other.n
def help1(a, b, depth=3):
    if depth == 0 or a == b: return a
    return help1(b, a - b, depth - 1)
def pairs(values):
    last = 0
    for value in values:
        yield value ^ last
        last = value
i0, f0, s0, b0, l0, d0 = 3, 1.5, 'abc', b'xyz', [1, 2, 3], {'k': 9}
`

// generator writes random Python.
type generator struct {
	random *rand.Rand
	text   strings.Builder
}

// randomSession returns a prelude and snippets that use its names.
func randomSession(random *rand.Rand) []string {
	sources := []string{prelude}
	for range 3 {
		g := &generator{random: random}
		g.block("", 4+random.IntN(8))
		g.text.WriteString("print(i0, f0, s0, b0, l0, d0)\n")
		sources = append(sources, g.text.String())
	}
	return sources
}

func (g *generator) pick(of []string) string { return of[g.random.IntN(len(of))] }

// expression returns an expression of a kind, nested at most depth levels.
func (g *generator) expression(kind byte, depth int) string {
	if depth == 0 || g.random.IntN(6) == 0 {
		if g.random.IntN(2) == 0 {
			return string(kind) + "0"
		}
		return g.pick(leaves[kind])
	}

	var out strings.Builder
	form := g.pick(expressions[kind])
	for i := 0; i < len(form); i++ {
		if form[i] == '@' {
			i++
			out.WriteString(g.expression(form[i], depth-1))
		} else {
			out.WriteByte(form[i])
		}
	}
	return out.String()
}

func (g *generator) kind() byte { return kinds[g.random.IntN(len(kinds))] }

// block writes statements.
func (g *generator) block(indent string, statements int) {
	for range statements {
		g.statement(indent)
	}
}

func (g *generator) statement(indent string) {
	line := func(format string, args ...any) { fmt.Fprintf(&g.text, indent+format+"\n", args...) }
	inner := indent + "    "
	kind := g.kind()
	what := g.random.IntN(12)
	if len(indent) >= 12 {
		what %= 6
	}

	switch what {
	case 0:
		line("print(%s)", g.expression(kind, 3))
	case 1:
		line("l0.append(%s)", g.expression('i', 2))
	case 2:
		line("d0[%s] = %s", g.expression('s', 1), g.expression('i', 2))
	case 3, 4, 5, 6:
		line("%c0 = %s", kind, g.expression(kind, 3))
	case 7:
		line("if %s:", g.expression(kind, 2))
		g.block(inner, 1+g.random.IntN(3))
		line("else:")
		g.block(inner, 1)
	case 8:
		line("for i0 in range(%d):", 1+g.random.IntN(12))
		g.block(inner, 1+g.random.IntN(3))
	case 9, 10:
		line("try:")
		g.block(inner, 1+g.random.IntN(4))
		line("except (ArithmeticError, LookupError, ValueError, TypeError) as e:")
		line("    print(type(e).__name__, e)")
	default:
		line("def inner(s0, *, f0=%s):", g.expression('f', 1))
		line("    i0, b0, l0, d0 = 1, b'', [4], {}")
		g.block(inner, 1+g.random.IntN(3))
		line("    return i0, s0")
		line("print(inner(%s))", g.expression('s', 2))
	}
}
