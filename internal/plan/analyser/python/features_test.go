package python

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/router"
)

// features returns the features of needs, without duplicates, sorted.
func features(n *router.Needs) []string {
	var names []string
	for _, f := range n.Features {
		names = append(names, string(f.Feature))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// TestFeaturesAreFound checks the features that snippets need; an empty string means none.
func TestFeaturesAreFound(t *testing.T) {
	a, _ := open(t)
	for _, c := range []struct{ source, want string }{
		// processes
		{"import subprocess\nsubprocess.run(['ls'])", "processes"},
		{"import subprocess as sp\nsp.check_output('ls', shell=True)", "processes"},
		{"from subprocess import Popen, PIPE\nPopen(['ls'], stdout=PIPE)", "processes"},
		{"import subprocess\nrun = subprocess.run\nrun(['ls'])", "processes"},
		{"import os\nos.system('ls')", "processes"},
		{"from os import system as s\ns('ls')", "processes"},
		{"import os as o\nx = o\nx.popen('ls').read()", "processes"},
		{"import os\nif os.fork() == 0:\n    pass", "processes"},
		{"os.system('ls')", "processes"},
		{"__import__('os').system('ls')", "processes"},
		{"import importlib\nimportlib.import_module('os').system('ls')", "processes"},
		{"m = __import__('subprocess')\nm.call(['ls'])", "processes"},
		{"import os\ngetattr(os, 'system')('ls')", "processes"},
		{"from os import *\nsystem('ls')", "processes"},
		{"import multiprocessing as mp\nwith mp.Pool(4) as p: print(p.map(str, [1]))", "processes"},
		{"from multiprocessing import Pool\nPool(2)", "processes"},
		{"import multiprocessing\nmultiprocessing.Process(target=print).start()", "processes"},
		{"from concurrent.futures import ProcessPoolExecutor", "processes"},
		{
			"import concurrent.futures as cf\nwith cf.ProcessPoolExecutor() as p: p.submit(print)",
			"processes",
		},
		{"import concurrent.futures\nconcurrent.futures.ProcessPoolExecutor()", "processes"},
		{"from concurrent import futures\nfutures.ProcessPoolExecutor()", "processes"},
		{
			"import asyncio\nasync def f():\n    p = await asyncio.create_subprocess_exec('ls')\nawait f()",
			"async processes",
		},
		{"def f():\n    import subprocess as s\n    return s.run(['ls'])\nf()", "processes"},
		{"import os\nlist(map(os.system, ['ls']))", "processes"},
		{"import signal\nsignal.alarm(1)", "processes"},
		{"from signal import setitimer, ITIMER_REAL\nsetitimer(ITIMER_REAL, 0.1)", "processes"},
		{"signal.pause()", "processes"},
		{"import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)", ""},
		{"import subprocess", ""},
		{"import subprocess\ntry:\n    x = 1\nexcept subprocess.CalledProcessError:\n    pass", ""},
		{"import os\nos.path.join('a', 'b')", ""},
		{"import os\nos.environ.get('HOME', '/')\nos.getenv('X')", ""},
		{"import os\nprint(os.cpu_count(), os.getpid(), os.sep, os.linesep)", ""},
		{"import multiprocessing\nprint(multiprocessing.cpu_count())", ""},
		{"class C:\n    def system(self, x): return x\nos = C()\nos.system('ls')", "classes"},
		{"def system(x): return x\nsystem('ls')", ""},
		{"def f(os): return os.system('x')", ""},
		{"for os in [1]:\n    os.popen", ""},
		{"f = lambda os: os.system(1)", ""},
		{"job.run('x')\nself_run = model.run(1)\nresult.wait()", ""},
		{"print('os.system(\"ls\") and subprocess.run')", ""},
		{"# import subprocess; subprocess.run('x')\nx = 1", ""},

		// threads
		{"import threading\nt = threading.Thread(target=print)\nt.start()", "threads"},
		{"from threading import Thread as T\nT(target=print).start()", "threads"},
		{"import threading\nclass W(threading.Thread):\n    pass", "classes threads"},
		{"import threading\nthreading.Timer(1, print).start()", "threads"},
		{"import threading as th\nts = [th.Thread(target=print) for _ in range(3)]", "threads"},
		{"import _thread\n_thread.start_new_thread(print, ())", "threads"},
		{"from multiprocessing.pool import ThreadPool\nThreadPool(4).map(str, [1])", "threads"},
		{"from multiprocessing.dummy import Pool\nPool(4)", "threads"},
		{"import threading\nlock = threading.Lock()\nwith lock: x = 1", ""},
		{"from threading import Lock, Event\nl = Lock()\nEvent().set()", ""},
		{"import threading\nprint(threading.current_thread().name)", ""},
		{
			"from concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor(8) " +
				"as p: list(p.map(llm_query, ['a']))",
			"",
		},
		{
			"import concurrent.futures\nwith concurrent.futures.ThreadPoolExecutor() as e:\n" +
				"    fs = [e.submit(llm_query, c) for c in 'ab']\n    rs = [f.result() for " +
				"f in concurrent.futures.as_completed(fs)]",
			"",
		},
		{"import queue\nq = queue.Queue()\nq.put(1)", ""},
		{"class Thread: pass\nThread()", "classes"},
		{"forum.Thread('title')", ""},

		// sockets
		{"import socket\ns = socket.socket()", "sockets"},
		{"from socket import socket, AF_INET\nsocket(AF_INET)", "sockets"},
		{"import socket\nsocket.create_connection(('x', 80))", "sockets"},
		{"import urllib.request\nurllib.request.urlopen('http://x')", "sockets"},
		{"from urllib.request import urlopen\nurlopen('http://x').read()", "sockets"},
		{"import urllib.request as r\nr.urlretrieve('http://x', 'y')", "sockets"},
		{"from urllib import request\nrequest.urlopen('http://x')", "sockets"},
		{"import http.client\nc = http.client.HTTPSConnection('x')", "sockets"},
		{"import requests\nr = requests.get('http://x', timeout=5)", "sockets"},
		{"import requests\nwith requests.Session() as s: s.get('http://x')", "sockets"},
		{"from requests import post\npost('http://x')", "sockets"},
		{
			"import httpx\nasync def f():\n    async with httpx.AsyncClient() " +
				"as c: return await c.get('u')\nawait f()",
			"async sockets",
		},
		{
			"import aiohttp\nasync def f():\n    async with aiohttp.ClientSession() as s: pass\nawait f()",
			"async sockets",
		},
		{"import asyncio\nr, w = await asyncio.open_connection('x', 80)", "async sockets"},
		{"import pandas as pd\npd.read_csv('https://x/y.csv')", "sockets"},
		{"import smtplib\nsmtplib.SMTP('x')", "sockets"},
		{"from urllib.parse import urlparse\nurlparse('http://x').netloc", ""},
		{"import urllib.parse\nurllib.parse.quote('a b')", ""},
		{"import socket\ntry:\n    x = 1\nexcept socket.timeout:\n    pass", ""},
		{"import http.client\nprint(http.client.responses[404])", ""},
		{"from http import HTTPStatus\nHTTPStatus.OK", ""},
		{"requests = [1, 2]\nrequests.get(1)", ""},
		{"cache.get('x')\nd = {}\nd.get('requests')", ""},
		{"requests = {}\nfor k in context: requests.get(k)", ""},

		// files
		{"open('x.txt')", "files"},
		{"with open('x.txt', 'w') as f: f.write('a')", "files"},
		{"def save(path, text):\n    with open(path, mode='w') as f: f.write(text)\nsave('x', 'y')", "files"},
		{"import io\nio.open('x')", "files"},
		{"import json\njson.load(open('x'))", "files"},
		{"o = open\no('x')", "files"},
		{"import builtins\nbuiltins.open('x')", "files"},
		{"import pathlib\np = pathlib.Path('x')\np.write_text('y')", "files"},
		{"from pathlib import Path\nPath('x').read_text()", "files"},
		{"from pathlib import Path\nd = Path('/tmp') / 'out'\nd.mkdir(exist_ok=True)", "files"},
		{"from pathlib import Path\n(Path('/tmp') / 'a').write_bytes(b'')", "files"},
		{"from pathlib import Path\nfor p in Path('.').glob('*.py'): print(p)", "files"},
		{
			"from pathlib import Path\nq = Path('a').parent.joinpath('b').with_suffix('.c')\n" +
				"q.touch()",
			"files",
		},
		{"from pathlib import Path\nwith Path('x').open() as f: f.read()", "files"},
		{"import os\nos.listdir('.')", "files"},
		{"from os import makedirs\nmakedirs('x', exist_ok=True)", "files"},
		{"import os\nfor r, d, f in os.walk('/'): print(r)", "files"},
		{"import os\nif os.path.exists('x'): os.remove('x')", "files"},
		{"import shutil\nshutil.rmtree('x')", "files"},
		{"import tempfile\nwith tempfile.NamedTemporaryFile() as f: pass", "files"},
		{"from tempfile import TemporaryDirectory as T\nwith T() as d: pass", "files"},
		{"import glob\nglob.glob('*.csv')", "files"},
		{"from glob import glob\nglob('*.csv')", "files"},
		{"import sqlite3\nsqlite3.connect('x.db')", "files"},
		{"import zipfile\nzipfile.ZipFile('x.zip')", "files"},
		{"import gzip\nname = 'x/data.gz'\ngzip.open(name)", "files"},
		{"import gzip, os\ngzip.open(os.path.join('a', 'b'))", "files"},
		{"import tarfile\ntarfile.open('x.tar.gz')", "files"},
		{"import pandas as pd\ndf = pd.read_csv('x.csv')", "files"},
		{"import pandas as pd\ndf = pd.DataFrame()\ndf.to_csv('out.csv', index=False)", "files"},
		{"import matplotlib.pyplot as plt\nplt.savefig('x.png')", "files"},
		{"import numpy as np\nnp.save('x.npy', np.zeros(3))", "files"},
		{"import logging\nlogging.basicConfig(filename='x.log')", "files"},
		{"import logging\nlogging.FileHandler('x.log')", "files"},
		{"import sqlite3\nsqlite3.connect(':memory:')", ""},
		{"import io\nf = io.StringIO('a')\nf.read()", ""},
		{"import zipfile, io\nb = io.BytesIO()\nzipfile.ZipFile(b, 'w')", ""},
		{"import zipfile, io\nwith zipfile.ZipFile(io.BytesIO()) as z: z.open('a')", ""},
		{"import gzip\ndef f(stream): return gzip.open(stream)", ""},
		{"import pandas as pd\nfrom io import StringIO\npd.read_csv(StringIO(context))", ""},
		{"print('open(\"x\")')", ""},
		{"with session.open() as f: f.read()", ""},
		{"door.open('x')\nimage.open()", ""},
		{"def open(x): return x\nopen('a')", ""},
		{"def f(open): return open('a')", ""},
		{"open = lambda x: x\nopen('a')", ""},
		{"for open, close in rows: open('a')", ""},
		{"import json\njson.load(f)\njson.loads('{}')", ""},
		{"import os\nos.path.exists('x'), os.path.basename('a/b'), os.path.splitext('a.b')", ""},
		{"from pathlib import Path\nPath('a/b.txt').stem + Path('x').name", ""},
		{"from pathlib import PurePosixPath\nPurePosixPath('a') / 'b'", ""},
		{"text.replace('a', 'b')\nrows.remove(1)\nitems.copy()\ndf.rename(columns={})", ""},
		{"import shutil\nshutil.get_terminal_size()\nshutil.which('ls')", ""},
		{"df.to_csv()\ndf.to_csv(buffer)", ""},
		{"import logging\nlogging.basicConfig(level=logging.INFO)", ""},
		{"import csv, io\nlist(csv.reader(io.StringIO(context)))", ""},
		{"open(1, 'w')", ""},

		// native
		{"import ctypes\nctypes.CDLL('libc.so.6')", "native"},
		{"from ctypes import cdll", "native"},
		{"import mmap", "native"},
		{"import cffi\nffi = cffi.FFI()", "native"},
		{"try:\n    import mmap\nexcept ImportError:\n    mmap = None", ""},

		// dynamic
		{"exec('x = 1')", "dynamic"},
		{"eval(expr)", "dynamic"},
		{"code = compile('1', 'x', 'eval')\neval(code)", "dynamic"},
		{"import importlib\nimportlib.import_module(name)", "dynamic"},
		{"__import__(name)", "dynamic"},
		{"from importlib import import_module as im\nim('a' + 'b')", "dynamic"},
		{"import os\ngetattr(os, name)()", "dynamic"},
		{"e = eval\ne('1')", "dynamic"},
		{"import ast\nast.literal_eval('[1]')", ""},
		{"import re\nre.compile('x')", ""},
		{"compile('1', 'x', 'eval')", ""},
		{"df.eval('a + b')\nmodel.eval()", ""},
		{"getattr(obj, name)\ngetattr(obj, 'x', None)", ""},
		{"import os\ngetattr(os, 'sep')", ""},
		{"def eval(x): return x\neval('1')", ""},
		{"import importlib\nimportlib.import_module('json')", ""},
		{"import importlib.util\nimportlib.util.find_spec('numpy')", ""},

		// async, classes, generators
		{"await f()", "async"},
		{"async def f(): pass", "async"},
		{"async with a as b: pass", "async"},
		{"async for x in y: pass", "async"},
		{"xs = [x async for x in y]", "async"},
		{"import asyncio\nr = await asyncio.gather(*[llm_query(c) for c in cs])", "async"},
		{"class A: pass", "classes"},
		{"from dataclasses import dataclass\n@dataclass\nclass A:\n    x: int = 0", "classes"},
		{"def f(): yield 1", "generators"},
		{"def f(): yield from g()", "generators"},
		{"sum(x for x in y)", "generators"},
		{"class A[T]:\n    def m[U](self, x: T) -> U: ...", "classes"},
		{"type X[T] = list[T]\ndef f[T](x: T) -> T: return x", ""},
		{"[x for x in y]; {x: 1 for x in y}; {x for x in y}", ""},
		{"awaited = 'async def class yield'", ""},
	} {
		t.Run(fmt.Sprintf("%.60s", c.source), func(t *testing.T) {
			got := strings.Join(features(needs(t, a, c.source)), " ")
			if got != c.want {
				t.Errorf("%q\n  needs %q, want %q", c.source, got, c.want)
			}
		})
	}
}
