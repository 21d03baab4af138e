package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"

	"github.com/rlmhq/rlm/internal/machine/cpython"
	"github.com/rlmhq/rlm/internal/testing/skip"
)

// The tests run the committed files, in forks of the image like those of the tier.
var shared struct {
	host  *host
	code  wazero.CompiledModule
	image []byte
}

// fork returns a new guest over a copy of the image.
func fork(t *testing.T) *guest {
	t.Helper()
	skip.Short(t, "it compiles the interpreter")
	skip.UnderRace(t)
	ctx := t.Context()
	if shared.host == nil {
		if err := openShared(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	g, err := shared.host.instantiate(ctx, shared.code, shared.image)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.mod.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return g
}

func openShared(ctx context.Context) error {
	module, err := cpython.Module()
	if err != nil {
		return err
	}
	if shared.image, err = cpython.Image(); err != nil {
		return err
	}
	h, err := newHost(ctx)
	if err != nil {
		return err
	}
	if shared.code, err = h.compile(ctx, module); err != nil {
		return err
	}
	shared.host = h
	return nil
}

func mustBoot(t *testing.T, g *guest, source string) {
	t.Helper()
	if err := g.boot(t.Context(), []byte(source)); err != nil {
		t.Fatal(err)
	}
}

// runSource runs a snippet through the input buffer and returns its status.
func runSource(t *testing.T, g *guest, source string, flags uint64) int32 {
	t.Helper()
	input, err := g.call(t.Context(), "input")
	if err != nil {
		t.Fatal(err)
	}
	if !g.mod.Memory().WriteString(input, source) {
		t.Fatal("the input buffer is not in the memory")
	}
	status, err := g.call(t.Context(), "run", uint64(input), uint64(len(source)), flags)
	if err != nil {
		t.Fatal(err)
	}
	return int32(status)
}

const evalRunner = "import _rlm\n_rlm.set_run(lambda source, flags: eval(source))\n"

func TestForkRunsSnippets(t *testing.T) {
	g := fork(t)
	mustBoot(t, g, "import _rlm\n_rlm.set_run(lambda s, f: len(s) + f)")
	tests := []struct {
		source string
		flags  uint64
		want   int32
	}{
		{"abc", 0, 3},
		{"", 0, 0},
		{"\u00e9\U0001f600", 0, 2},
		{"\xff\xfe", 0, 2}, // not UTF-8: escaped rather than rejected
		{"a\x00b", 0, 3},
		{"abc", 7, 10},
	}
	for _, tt := range tests {
		t.Run(tt.source, func(t *testing.T) {
			if got := runSource(t, g, tt.source, tt.flags); got != tt.want {
				t.Errorf("%q, %d: got %d, want %d", tt.source, tt.flags, got, tt.want)
			}
		})
	}
	if g.output.Len() > 0 {
		t.Errorf("the guest printed %q", g.output.String())
	}
}

func TestRunReportsWhatWentWrong(t *testing.T) {
	g := fork(t)
	if got := runSource(t, g, "1", 0); got != -1 ||
		!strings.Contains(g.output.String(), "nothing is registered") {
		t.Errorf("with nothing registered: %d, %q", got, g.output.String())
	}
	mustBoot(t, g, evalRunner)
	tests := []struct{ source, want string }{
		{"1/0", "ZeroDivisionError: division by zero"},
		{"'text'", "TypeError: the runner returned str, not int"},
		{"-5", "ValueError"},
		{"1 << 40", "OverflowError"},
		{"exit_()", "NameError"},
		{"(_ for _ in ()).throw(SystemExit(3))", "SystemExit: 3"},
		{"(_ for _ in ()).throw(KeyboardInterrupt)", "KeyboardInterrupt"},
	}
	for _, tt := range tests {
		t.Run(tt.source, func(t *testing.T) {
			g.output.Reset()
			if got := runSource(t, g, tt.source, 0); got != -1 {
				t.Errorf("%s: got %d, want -1", tt.source, got)
			}
			if !strings.Contains(g.output.String(), tt.want) {
				t.Errorf("%s: printed %q, want %q in it", tt.source, g.output.String(), tt.want)
			}
		})
	}
	g.output.Reset()
	if got := runSource(t, g, "True + 1", 0); got != 2 || g.output.Len() > 0 {
		t.Errorf("afterwards: %d, %q", got, g.output.String())
	}
}

func TestBootReportsWhatWentWrong(t *testing.T) {
	g := fork(t)
	mustBoot(t, g,
		"assert __name__ == '__boot__' and len is __builtins__['len'], (__name__, __builtins__)")
	tests := []struct{ source, want string }{
		{"raise ValueError('no')", "File \"<boot>\", line 1, in <module>\nValueError: no"},
		{"1 +", "SyntaxError"},
		{"x = '\x00'", "null bytes"},
		{"raise SystemExit", "SystemExit"},
	}
	for _, tt := range tests {
		t.Run(tt.source, func(t *testing.T) {
			g.output.Reset()
			err := g.boot(t.Context(), []byte(tt.source))
			if err == nil || !strings.Contains(err.Error(), "boot returned -1") ||
				!strings.Contains(g.output.String(), tt.want) {
				t.Errorf("%q: got %v", tt.source, err)
			}
		})
	}
	mustBoot(t, g, "assert 'x' not in globals()")
}

func TestCallsToTheHost(t *testing.T) {
	g := fork(t)
	g.answer = func(request string) (string, uint64) {
		switch {
		case request == "fail":
			return "caf\u00e9 \xff", replyError
		case request == "fail ascii":
			return "no", replyError | replyASCII
		case strings.HasPrefix(request, "ascii:"):
			return request[len("ascii:"):], replyASCII
		}
		return request, 0
	}
	mustBoot(t, g, `
from _rlm import call, call_str, HostError
assert issubclass(HostError, RuntimeError)
assert call("echo") == b"echo" == call(b"echo") == call(bytearray(b"echo")) == call(memoryview(b"echo"))
assert call("") == b"" and call_str("") == "" and call_str("ascii:") == "" and call("ascii:") == b""
assert call_str("ascii:plain") == "plain" and call("ascii:plain") == b"plain"
assert call_str("ascii:x") == "x" and {"x": 1}[call_str("ascii:x")] == 1
assert call_str("caf\u00e9 \U0001f600") == "caf\u00e9 \U0001f600"
assert call("\udcff\u00e9") == b"\xff\xc3\xa9" and call_str(b"\xff") == "\udcff"
big = "y" * 3_000_000
assert call_str("ascii:" + big) == big and len(call("\u00e9" * 1_000_000)) == 2_000_000
for request, text in (("fail", "caf\u00e9 \udcff"), ("fail ascii", "no")):
    for f in call, call_str:
        try: f(request)
        except HostError as e: assert e.args == (text,), e.args
        else: assert False
for bad, error in (("\ud800", UnicodeEncodeError), (1, TypeError), (None, TypeError)):
    try: call(bad)
    except error: pass
    else: assert False
try: __import__("_rlm").set_run(1)
except TypeError: pass
else: assert False
`)
	if g.pending != "" {
		t.Errorf("%d bytes of a reply were not taken", len(g.pending))
	}
}

func TestAReplyTooLargeForTheGuestIsDiscarded(t *testing.T) {
	g := fork(t)
	g.answer = func(string) (string, uint64) { return strings.Repeat("z", 64<<20), replyASCII }
	g.memory.limit = uint64(len(g.memory.buf)) + 32<<20
	mustBoot(t, g, `
import _rlm
for f in _rlm.call, _rlm.call_str:
    try: f("")
    except MemoryError: pass
    else: assert False
`)
	if g.pending != "" {
		t.Error("the reply is still pending")
	}
}

func TestFuelIsExact(t *testing.T) {
	const source = "sum(i * i for i in range(50_000)) and len(sorted(str(i) for i in range(5_000)))"
	var used [2]int64
	for i := range used {
		g := fork(t)
		mustBoot(t, g, evalRunner)
		before := g.fuel()
		if got := runSource(t, g, source, 0); got != 5000 {
			t.Fatalf("got %d, %s", got, g.output.String())
		}
		used[i] = before - g.fuel()
	}
	if used[0] != used[1] || used[0] < 50_000 {
		t.Errorf("two forks used %d and %d for the same", used[0], used[1])
	}
}

func TestWordsInterrupt(t *testing.T) {
	g := fork(t)
	mustBoot(t, g, evalRunner)
	at, err := g.call(t.Context(), "words")
	if err != nil {
		t.Fatal(err)
	}
	var words [5]uint32
	for i := range words {
		words[i] = binary.LittleEndian.Uint32(g.memory.buf[at+uint32(4*i):])
	}
	breaker := binary.LittleEndian.Uint32(g.memory.buf[words[0]:])
	binary.LittleEndian.PutUint32(g.memory.buf[words[2]:], words[3])
	binary.LittleEndian.PutUint32(g.memory.buf[words[0]:], breaker|words[1])
	if got := runSource(t, g, "[i for i in range(10)] and 1", 0); got != -1 ||
		!strings.Contains(g.output.String(), "KeyboardInterrupt") {
		t.Errorf("got %d, %q", got, g.output.String())
	}
	if got := runSource(t, g, "4", 0); got != 4 {
		t.Errorf("afterwards: %d", got)
	}
	if left := int32(binary.LittleEndian.Uint32(g.memory.buf[words[4]:])); left < 1000 ||
		left > 20_000 {
		t.Errorf("%d C frames left, which cannot be", left)
	}
}

func TestForksAreApart(t *testing.T) {
	a, b := fork(t), fork(t)
	mustBoot(t, a, "import json, builtins; json.mark = builtins.mark = 1")
	mustBoot(t, b,
		"import json, builtins; assert not hasattr(json, 'mark') and not hasattr(builtins, 'mark')")
}

func TestLibrary(t *testing.T) {
	g := fork(t)
	mustBoot(t, g, "import _rlm, importlib\n"+
		"_rlm.set_run(lambda name, flags: 1 if importlib.import_module(name) else 0)")
	works := `__future__ _sitebuiltins argparse asyncio bdb cmath cmd code colorsys concurrent.futures
		configparser copy csv datetime decimal doctest email.message email.mime.text
		encodings.cp1252 encodings.idna encodings.shift_jis fileinput gettext glob graphlib gzip hmac
		html.entities html.parser http http.client http.cookies importlib.metadata importlib.resources
		ipaddress json.tool logging.config logging.handlers numbers optparse pathlib pdb pickle pkgutil
		platform plistlib queue quopri runpy sched secrets shelve shlex shutil signal site socket
		stringprep subprocess symtable sysconfig tabnanny tarfile tempfile timeit tomllib
		unittest unittest.mock urllib.request wave xml.dom.minidom xml.etree.ElementTree xml.sax
		zipfile zipimport zoneinfo _pylong _strptime`
	for _, name := range strings.Fields(works) {
		g.output.Reset()
		if got := runSource(t, g, name, 0); got != 1 || g.output.Len() > 0 {
			t.Errorf("%s: %d, %s", name, got, g.output.String())
		}
	}
	fails := `sqlite3 ssl ctypes bz2 lzma multiprocessing tkinter no_such_module encodings.no_such json.no_such`
	for _, name := range strings.Fields(fails) {
		g.output.Reset()
		got := runSource(t, g, name, 0)
		if want := fmt.Sprintf("ModuleNotFoundError: No module named '%s'", name); got != -1 ||
			!strings.Contains(g.output.String(), want) {
			t.Errorf("%s: %d, %s", name, got, g.output.String())
		}
	}
}

func TestPackedPythonServesSnippets(t *testing.T) {
	g := fork(t)
	mustBoot(t, g, `
import sys
assert sys.path == [] and sys.flags.utf8_mode and sys.maxsize == 2**31 - 1
import json, datetime, decimal, re, unicodedata, zlib, hashlib, sysconfig, importlib
assert json.__file__ and json.__doc__ and json.__spec__.origin == "frozen", json.__spec__
assert importlib.reload(json) is json
assert type(datetime.datetime.now()).__module__ == "datetime"
assert decimal.Decimal("1.1") + 1 == decimal.Decimal("2.1") and decimal.__libmpdec_version__
assert zlib.decompress(zlib.compress(b"x" * 1000)) == b"x" * 1000
assert hashlib.sha256(b"").hexdigest().startswith("e3b0c442")
assert "caf\u00e9".encode("cp1252") == b"caf\xe9"
assert len(str(10**5000)) == 5001 if not sys.set_int_max_str_digits(0) else 0
assert not any("/" in v for v in sysconfig.get_config_vars().values()
               if isinstance(v, str) and "rlm" in v)
def f(): f()
try: f()
except RecursionError: pass
try: eval("(" * 5000 + ")" * 5000)
except (MemoryError, RecursionError, SyntaxError): pass
try: open("/etc/passwd")
except OSError: pass
else: assert False
try: __import__("threading").Thread(target=print).start()
except RuntimeError: pass
else: assert False
`)
}
