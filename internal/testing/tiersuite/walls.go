package tiersuite

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rlmhq/rlm/internal/testing/harm"
	"github.com/rlmhq/rlm/tiers"
)

// testForgery prints, raises and returns strings that look like the runtime's own messages.
func (s *suite) testForgery(t *testing.T) {
	cfg := func() tiers.Config { return newHost().config() }
	s.playScenarios(t, cfg, []scenario{
		{name: "JSON on stdout", steps: []step{{source: `print('{"final": {"value": 1}}')` +
			"\nprint('{\"type\":\"FINAL\",\"value\":1}')", out: `{"final": {"value": 1}}
{"type":"FINAL","value":1}
`}, {source: "print(1)", out: "1\n"}}},
		{name: "NUL bytes on stdout", steps: []step{{
			source: `print('f{"value":1}\0c\0[]', end='')`,
			out:    "f{\"value\":1}\x00c\x00[]",
		}, {source: "print(1)", out: "1\n"}}},
		{name: "bytes that are no text", steps: []step{{source: `import sys
_ = sys.stdout.buffer.write(bytes(range(256)))
sys.stdout.flush()`, anyOut: true}, {source: "print(1)", out: "1\n"}}},
		{name: "a frame header", steps: []step{{source: `import sys
sys.stdout.buffer.write(b'\xff\xff\xff\xff' * 100)
sys.stdout.flush()`, anyOut: true}, {source: "print(1)", out: "1\n"}}},
		{name: "a traceback on stderr is no exception", steps: []step{{source: `import sys
print('Traceback (most recent call last):\nValueError: fake', file=sys.stderr)`, says: []string{"fake"}}}},
		{name: "an exception named like a limit", steps: []step{{source: `class MemoryError(Exception): pass
raise MemoryError('fake')`, raises: "MemoryError"}}},
		{
			name: "a KeyboardInterrupt by hand is no limit",
			steps: []step{{
				source: "raise KeyboardInterrupt('by hand')", raises: "KeyboardInterrupt",
				says: []string{"by hand"},
			}},
		},
		{
			name:  "a MemoryError by hand is no limit",
			steps: []step{{source: "raise MemoryError('by hand')", raises: "MemoryError", says: []string{"by hand"}}},
		},
		{
			name: "a text reference by hand",
			steps: []step{
				{source: "print(seen({'__rlm_text__': [0, 0, 10]}) != '')", out: "True\n"},
				{source: "print(seen({'__rlm_text__': ['x', -1, 10 ** 30]}) != '')", out: "True\n"},
			},
		},
		{
			name: "a file name like the runtime's",
			steps: []step{
				{source: "exec(compile('1/0', '<snippet 99>', 'exec'))", raises: "ZeroDivisionError"},
				{source: "exec(compile('def f(): 1/0\\nf()', '<rlm runtime>', 'exec'))", raises: "ZeroDivisionError"},
			},
		},
	})
}

// wireScript is code that sends requests to the runtime's private module, as a snippet could. It
// calls each function with bytes, with a str and with odd types.
const wireScript = `import sys
try:
    import _rlm
except ImportError:
    _rlm = None
def attempt(f, *a):
    try:
        f(*a)
    except Exception:
        pass
functions = [f for f in vars(_rlm).values() if callable(f)] if _rlm else []
%s
print('survived')`

// testWire sends garbage to the private module. Each request must result in an answer, an exception
// or the end of the snippet.
func (s *suite) testWire(t *testing.T) {
	rows := map[string]string{
		"odd types": `for f in functions:
    for a in ((), (None,), (5,), ([],), (b'',), ('',), (b'', b''), ('\ud800',), (bytearray(b'x'),),
              (memoryview(b'tf'),), (object(), 1, 2, 3)):
        attempt(f, *a)`,
		"one byte": `for f in functions:
    for i in range(256): attempt(f, bytes([i])); attempt(f, chr(i))`,
		"two bytes": "for f in functions:\n    for i in range(0, 65536, 7): attempt(f, i.to_bytes(2))",
		"huge": `for f in functions:
    for op in b'octsfdexij': attempt(f, bytes([op]) * 20_000_000)`,
		"nested JSON": `for f in functions:
    for op in ('c', 's', 'f', 'e'):
        for head in ('', 'ask\0'): attempt(f, op + head + '[' * 1_000_000)`,
		"wrong JSON": `for f in functions:
    for op in ('cask\0', 'sask\0', 'c\0', 'f', 'e'):
        for v in ('', 'null', '5', '[]', '[1,2,3]', '[[],{},[]]', '{}', '[null,null]', '{"value":}',
                  '[[],{}]x', '\x00', '[{},[]]'): attempt(f, op + v)`,
		"numbers": `for f in functions:
    for op in ('ts', 'tb', 'tf', 'tr', 'tc', 'tp', 'tl', 'tx', 'tg', 'dl', 'do', 'j', 'w', 'x', 'z'):
        for n in ('0', '-1', '1', '99', '2147483648', '-9223372036854775808',
                  '9223372036854775807', '1e9', '', '0x1', ' 1'):
            if op in ('w', 'z') and len(n) > 1: continue
            for k in range(1, 8): attempt(f, op + ','.join([n] * k)); attempt(f, op + '0,' + ','.join([n] * k) + ',x')`,
		"regexes": `for f in functions:
    for p in ('(', '[', 'a{1001}', '(?P<n', '\\', '((((a*)*)*)*)*', '\xff', '(?i)' * 1000,
              'a' * 1_000_000): attempt(f, 'tx0,0,5,0,10,' + p)`,
	}

	rng := rand.New(rand.NewPCG(1, 2)) // fixed, so that failures are reproducible
	const ops = "ocswxzfeijdt"
	var random strings.Builder
	for range 3000 {
		b := make([]byte, rng.IntN(24)+1)
		for i := range b {
			b[i] = "0123456789,-slobfrcpgx\x00[]{}\"\xffask"[rng.IntN(31)]
		}
		b[0] = ops[rng.IntN(len(ops))]
		if b[0] == 'w' || b[0] == 'z' {
			b[0] = 't' // a request that succeeds in waiting would take time
		}

		fmt.Fprintf(&random, "for f in functions: attempt(f, bytes.fromhex('%x'))\n", b)
	}

	rows["random"] = random.String()
	for _, name := range pickFew(s, slices.Sorted(maps.Keys(rows))) {
		t.Run(name, func(t *testing.T) {
			cfg := newHost().config()
			cfg.Limits = tiers.Limits{Wall: max(18*time.Second, 18*s.opt.StopAfter), Memory: 4 * s.opt.Memory}
			cfg.Inputs = []tiers.Input{{Name: "v", Value: json.RawMessage(`"small"`)}}
			box := s.open(t, cfg)
			box.mustRun(t, harm.Marked)
			r := box.run(t, fmt.Sprintf(wireScript, rows[name]))
			t.Logf("%s %s", r.Status, r.Limit)
			// The snippet may have set a FINAL or reported an exception. That is legitimate, as if
			// the snippet had called FINAL or raised an exception.
			box.checkAlive(t)
			box.checkHonest(t, r)
			box.mustPrint(t, "print(ask('still'))", "re: still\n")
		})
	}
}

// reaching is a snippet that attempts something that only a tier with the feature may allow. PORT
// is a server on the host.
type reaching struct {
	name    string
	feature tiers.Feature
	source  string
}

// beyond are snippets that succeed on a plain CPython, as TestReachOnCPython demonstrates.
var beyond = []reaching{
	{"threading", tiers.FeatureThreads, "import threading\nthreading.Thread(target=print).start()"},
	{"_thread", tiers.FeatureThreads, "import _thread\n_thread.start_new_thread(print, ())"},
	{"subprocess", tiers.FeatureProcesses, "import subprocess\nsubprocess.run(['ls', '/'])"},
	{"os.system", tiers.FeatureProcesses, "import os\nos.system('ls /')"},
	{"os.popen", tiers.FeatureProcesses, "import os\nos.popen('ls /').read()"},
	{"os.fork", tiers.FeatureProcesses, "import os\nos.fork()"},
	{"os.execv", tiers.FeatureProcesses, "import os\nos.execv('/bin/sh', ['sh', '-c', 'echo got there'])"},
	{"os.posix_spawn", tiers.FeatureProcesses, "import os\nos.posix_spawn('/bin/ls', ['ls'], {})"},
	{"multiprocessing", tiers.FeatureProcesses, `import multiprocessing
p = multiprocessing.Process(target=print)
p.start()`},
	{"a socket that connects", tiers.FeatureSockets, `import socket
socket.create_connection(('127.0.0.1', PORT), 1)`},
	{"a socket that listens", tiers.FeatureSockets, `import socket
s = socket.socket()
s.bind(('127.0.0.1', 0))
s.listen()`},
	{"a UDP socket", tiers.FeatureSockets, `import socket
socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', 53))`},
	{"a name lookup", tiers.FeatureSockets, "import socket\nsocket.getaddrinfo('localhost', 80)"},
	{"urllib", tiers.FeatureSockets, `import urllib.request
urllib.request.urlopen('http://127.0.0.1:PORT/')`},
	{"reading a file of the host", tiers.FeatureFiles, "open('/etc/passwd').read()"},
	{"reading by os.open", tiers.FeatureFiles, "import os\nos.read(os.open('/etc/passwd', os.O_RDONLY), 10)"},
	{"listing the root", tiers.FeatureFiles, "import os\nos.listdir('/')"},
	{"listing upwards", tiers.FeatureFiles, "import os\nos.listdir('../../../..')"},
	{"writing a file", tiers.FeatureFiles, "open('escape', 'w')"},
	{"a temporary file", tiers.FeatureFiles, "import tempfile\ntempfile.NamedTemporaryFile()"},
	{"a symbolic link", tiers.FeatureFiles, "import os\nos.symlink('/etc', 'etc')"},
	{"a file by introspection", tiers.FeatureFiles, "print.__self__.__dict__['open']('/etc/passwd').read()"},
	{
		"a program by introspection", tiers.FeatureProcesses,
		"[c for c in ().__class__.__base__.__subclasses__() if c.__name__ == " +
			"'_wrap_close'][0].__init__.__globals__['popen']('echo hi').read()",
	},
	{"the memory map in /proc", tiers.FeatureFiles, "open('/proc/self/maps').read()"},
	{"pathlib", tiers.FeatureFiles, "import pathlib\npathlib.Path('/etc/hosts').read_text()"},
	{"ctypes", tiers.FeatureNative, "import ctypes"},
	{"mmap", tiers.FeatureNative, "import mmap\nmmap.mmap(-1, 10)"},
}

// testWalls runs snippets that a tier without the feature must refuse with an exception.
func (s *suite) testWalls(t *testing.T) {
	port := startListener(t)
	for _, row := range beyond {
		t.Run(row.name, func(t *testing.T) {
			if s.info.Has(row.feature) {
				t.Skipf("tier %s has the feature %q", s.info.Name, row.feature)
			}
			box := s.open(t, tiers.Config{Limits: tiers.Limits{Wall: max(3*time.Second, 3*s.opt.StopAfter)}})
			r := box.run(t, strings.ReplaceAll(row.source, "PORT", port))
			if r.Status != tiers.StatusRaised {
				t.Errorf("want an exception\n%s", describe(r))
			}

			box.checkAlive(t)
		})
	}
}

// startListener starts a server on the host and returns its port.
func startListener(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(server.Close)
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}

	return port
}

// testIsolation spoils one sandbox, and checks sandboxes that were opened before and after it.
func (s *suite) testIsolation(t *testing.T) {
	older := s.open(t, emptyConfig())
	older.mustRun(t, harm.Marked)
	villain := s.open(t, emptyConfig())
	villain.mustRun(t, `import builtins, json, sys, math, os, random
builtins.len = lambda x: 666
json.loads = lambda x: 'spoiled'
math.pi = 3
sys.modules['spoiled'] = 1
os.environ['SPOILED'] = 'yes'
random.seed(1)
int.__doc__
kept = 'villain'`)

	newer := s.open(t, emptyConfig())
	for name, box := range map[string]*session{"older": older, "newer": newer} {
		t.Run(name, func(t *testing.T) {
			box.mustPrint(t, `import json, math, sys, os
print(len([1]), json.loads('2'), math.pi > 3.1, 'spoiled' in sys.modules, 'SPOILED' in os.environ,
      globals().get('kept') == 'villain')`, "1 2 True False False False\n")
		})
	}
}
