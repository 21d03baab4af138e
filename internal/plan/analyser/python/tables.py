"""The meaning of names of the standard library and of popular packages: data for
analyse.py, which is run after this file in the same namespace."""

import ast
import builtins
import re
from operator import attrgetter


def _rows(text):
    """{name: kind} of lines `kind prefix: names`."""
    rows = {}
    for line in text.strip().splitlines():
        head, _, names = line.partition(": ")
        kind, _, prefix = head.strip().partition(" ")
        rows.update((prefix + name, kind) for name in names.split())
    return rows


# Using one of these, called or passed on, is the need. What only describes
# (os.path.join, socket.timeout, threading.Lock) is not here.
FEATURES = _rows("""
processes os.: system popen fork forkpty execl execle execlp execlpe execv execve execvp
processes os.: execvpe kill killpg
processes os.: spawnl spawnle spawnlp spawnlpe spawnv spawnve spawnvp spawnvpe posix_spawn
processes os.: posix_spawnp wait waitpid wait3 wait4 startfile
processes subprocess.: run Popen call check_call check_output getoutput getstatusoutput
processes multiprocessing.: Process Pool Manager Queue SimpleQueue JoinableQueue Pipe Value
processes multiprocessing.: Array get_context set_start_method
processes multiprocessing.: shared_memory.SharedMemory managers.BaseManager pool.Pool
processes multiprocessing.: context.Process
processes concurrent.futures.: ProcessPoolExecutor process.ProcessPoolExecutor
processes asyncio.: create_subprocess_exec create_subprocess_shell
processes pty.: spawn fork
processes signal.: alarm setitimer pause sigwait sigwaitinfo sigtimedwait pthread_kill
threads threading.: Thread Timer
threads _thread.: start_new_thread start_new
threads multiprocessing.: pool.ThreadPool dummy.Pool dummy.Process
sockets socket.: socket create_connection create_server socketpair gethostbyname gethostbyaddr
sockets socket.: getaddrinfo getnameinfo fromfd
sockets urllib.request.: urlopen urlretrieve build_opener install_opener
sockets http.client.: HTTPConnection HTTPSConnection
sockets http.server.: HTTPServer ThreadingHTTPServer
sockets socketserver.: TCPServer UDPServer ThreadingTCPServer ThreadingUDPServer
sockets requests.: get post put patch delete head options request Session session
sockets httpx.: get post put patch delete head options request stream Client AsyncClient
sockets aiohttp.: ClientSession request TCPConnector
sockets asyncio.: open_connection open_unix_connection start_server start_unix_server
sockets urllib3.: PoolManager HTTPConnectionPool HTTPSConnectionPool request
sockets smtplib.: SMTP SMTP_SSL
sockets ftplib.: FTP FTP_TLS
sockets imaplib.: IMAP4 IMAP4_SSL
sockets poplib.: POP3 POP3_SSL
sockets xmlrpc.: client.ServerProxy server.SimpleXMLRPCServer
sockets websockets.: connect serve
sockets websocket.: create_connection WebSocketApp
sockets paramiko.: SSHClient Transport
sockets boto3.: client resource Session
sockets openai.: OpenAI AsyncOpenAI
sockets anthropic.: Anthropic AsyncAnthropic
files os.: listdir scandir walk fwalk remove unlink mkdir makedirs rmdir removedirs rename
files os.: renames replace open chdir
files os.: chmod chown symlink link readlink truncate mkfifo mknod utime stat lstat statvfs
files os.path.: getsize getmtime getatime getctime samefile
files shutil.: copy copy2 copyfile copytree copymode copystat rmtree move make_archive
files shutil.: unpack_archive disk_usage chown
files tempfile.: NamedTemporaryFile TemporaryFile TemporaryDirectory mkstemp mkdtemp gettempdir
files tempfile.: mktemp
files glob.: glob iglob
files Path.: open read_text read_bytes write_text write_bytes mkdir touch unlink rmdir rename
files Path.: replace iterdir glob rglob walk
files Path.: stat lstat chmod symlink_to hardlink_to readlink owner group samefile
files shelve.: open
files dbm.: open
files fileinput.: input FileInput
files logging.: FileHandler handlers.RotatingFileHandler handlers.TimedRotatingFileHandler
files linecache.: getline getlines
files runpy.: run_path
native ctypes.: CDLL PyDLL cdll pydll windll util.find_library create_string_buffer c_int
native ctypes.: c_char_p POINTER cast pythonapi Structure
native cffi.: FFI
native mmap.: mmap
native torch.: utils.cpp_extension.load
dynamic : exec eval
dynamic builtins.: exec eval
dynamic importlib.: reload util.spec_from_file_location util.module_from_spec
dynamic importlib.: machinery.SourceFileLoader
dynamic runpy.: run_module
dynamic code.: InteractiveInterpreter InteractiveConsole
""")

# Modules that are a need by themselves.
IMPORTED = {"ctypes": "native", "cffi": "native", "mmap": "native", "_ctypes": "native"}

# These open what the argument at the position names: a need only when that is
# seen to be a path, for it may be a buffer.
OPENERS = {name: int(position) for name, position in _rows("""
0 gzip.: open GzipFile
0 bz2.: open BZ2File
0 lzma.: open LZMAFile
0 zipfile.: ZipFile is_zipfile
0 tarfile.: open is_tarfile
0 wave.: open
0 sqlite3.: connect
0 xml.etree.ElementTree.: parse
0 numpy.: save savez savez_compressed savetxt load loadtxt genfromtxt fromfile
0 pandas.: read_csv read_table read_json read_excel read_parquet read_pickle read_feather
0 pandas.: read_html read_xml ExcelWriter HDFStore
0 polars.: read_csv read_json read_parquet read_excel scan_csv scan_parquet
0 PIL.: Image.open
0 torch.: load
0 joblib.: load
1 torch.: save
1 joblib.: dump
""").items()}

# Methods of unknown objects that write the file their first argument names.
SAVERS = frozenset(
    "to_csv to_excel to_parquet to_pickle to_feather to_hdf savefig write_html write_image".split()
)

# Functions that are looked into when called.
CALLED = {
    "open": "open", "io.open": "open", "codecs.open": "open", "builtins.open": "open",
    "getattr": "getattr", "importlib.import_module": "import", "__import__": "import",
    "builtins.__import__": "import", "importlib.__import__": "import",
    "logging.basicConfig": "basicConfig", "range": "range",
}

# A snippet without large numbers and without these calls does not compute for long.
LARGE_NUMBER = re.compile(r"\d[\d_]{5,}|\d\s*\*\*\s*\d|\de\d|<<")
LARGE_CALLS = ("permutations(", "combinations(", "product(", "factorial(", "pbkdf2_hmac(")

# What a call, or an attribute, evaluates to.
RESULTS = {
    "io.BytesIO": "buffer", "io.StringIO": "buffer", "os.path.join": "str",
    "os.path.abspath": "str", "os.path.expanduser": "str", "os.getcwd": "str", "str": "str",
    "pathlib.Path": "Path", "pathlib.PosixPath": "Path", "pathlib.Path.cwd": "Path",
    "pathlib.Path.home": "Path",
}
_MAKE_PATHS = "joinpath with_suffix with_name with_stem resolve absolute expanduser relative_to"
RESULTS.update((f"Path.{name}", "Path") for name in _MAKE_PATHS.split())
ATTRIBUTES = {"Path.parent": "Path"}

# Attributes whose call may give one of RESULTS.
RESULTING = frozenset(path.rpartition(".")[2] for path in (*RESULTS, *CALLED))

# Attribute names worth a closer look.
HOT = frozenset(path.rpartition(".")[2] for path in (*FEATURES, *OPENERS, *CALLED)) | SAVERS
# Modules whose names are followed through aliases.
FOLLOWED = frozenset(
    path.partition(".")[0] for path in (
        *FEATURES, *OPENERS, *CALLED, *RESULTS, "typing", "typing_extensions", "sys", "platform",
    )
) - {"Path", "str"}

# What a function needs only when it is called; the other features are of its syntax.
DEFERRED = frozenset("processes threads sockets files native".split())
# Decorators that do not call what they decorate.
PLAIN_DECORATORS = frozenset("""dataclass cache lru_cache wraps contextmanager asynccontextmanager
total_ordering final override overload runtime_checkable singledispatch unique deprecated""".split())

# Names that mean a module or a builtin as long as the snippet does not bind them
# itself: an earlier snippet of the session has most likely imported them.
_SAME = """open exec eval getattr __import__ os subprocess socket shutil threading multiprocessing
tempfile glob requests httpx aiohttp urllib ctypes sqlite3 importlib pathlib io gzip zipfile tarfile
range signal sys platform"""
IMPLIED = {name: name for name in _SAME.split()}
IMPLIED.update(
    TYPE_CHECKING="typing.TYPE_CHECKING",
    Path="pathlib.Path", np="numpy", pd="pandas", BytesIO="io.BytesIO", StringIO="io.StringIO",
    ThreadPool="multiprocessing.pool.ThreadPool",
)

BUILTINS = frozenset(dir(builtins)) | frozenset(
    ("__name__", "__doc__", "__builtins__", "__file__", "__annotations__")
)

CATCHES_IMPORT = frozenset(("ImportError", "ModuleNotFoundError", "Exception", "BaseException"))

# The children of the nodes that need no thought, in the order of evaluation.
_CHILDREN = """
UnaryOp operand | BoolOp values | List elts | Tuple elts | Set elts | JoinedStr values
keyword value | MatchValue value | MatchSequence patterns | MatchOr patterns
BinOp left right | Compare left comparators | Subscript value slice | Slice lower upper step
Dict keys values | IfExp test body orelse | Assert test msg
FormattedValue value format_spec | Raise exc cause | withitem context_expr optional_vars
match_case pattern guard body | MatchClass cls patterns kwd_patterns

"""


def _children():
    """Getters of one child, and getters of several, last child first."""
    one, many = {}, {}
    for row in _CHILDREN.replace("\n", "|").split("|"):
        name, *fields = row.split() or [""]
        kind = getattr(ast, name, None)
        if len(fields) == 1:
            one[kind] = attrgetter(*fields)
        elif fields:
            many[kind] = attrgetter(*fields[::-1])
    return one, many


ONE, MANY = _children()
