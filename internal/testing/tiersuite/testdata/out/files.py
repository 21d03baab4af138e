# Files below /out. On CPython, another folder stands for it.
import csv, glob, io, json, os, pathlib, shutil, tempfile, zipfile

ROOT = "/out" if os.path.isdir("/out") else tempfile.mkdtemp()


def name(path):
    return os.fspath(path).replace(ROOT, "OUT")


def attempt(what, *args, **named):
    try:
        result = what(*args, **named)
        print("fine", type(result).__name__)
    except Exception as error:
        print(type(error).__name__, getattr(error, "filename", None) and name(error.filename))


at = lambda *parts: os.path.join(ROOT, *parts)
print(os.listdir(ROOT), os.path.isdir(ROOT), os.path.exists(at("nothing")))

# Text, bytes, modes.
with open(at("a.txt"), "w", encoding="utf-8") as file:
    print(file.write("héllo\nworld\n"), file.mode, name(file.name), file.writable(), file.readable())
print(repr(open(at("a.txt")).read()), open(at("a.txt"), "rb").read()[:3], os.path.getsize(at("a.txt")))
with open(at("a.txt"), "a") as file:
    print("more", file=file)
with open(at("a.txt"), "a+") as file:
    file.write("last\n")
    file.seek(0)
    print(file.readlines())
with open(at("b.bin"), "wb") as file:
    file.write(bytes(range(256)))
with open(at("b.bin"), "r+b") as file:
    file.seek(10)
    file.write(b"zz")
    print(file.tell(), file.read(2), file.seek(-3, 2), file.read(), file.truncate(20), file.seekable())
with open(at("b.bin"), "rb", buffering=0) as file:
    print(type(file.read(5)).__name__, file.tell(), len(file.readall()))
with open(at("sparse"), "wb") as file:
    file.seek(5)
    file.write(b"x")
print(open(at("sparse"), "rb").read())
for mode in ("x", "rw", "q", "wt+b", ""):
    attempt(open, at("a.txt"), mode)
attempt(open, at("a.txt"), "rb", encoding="utf-8")
attempt(open, at("a.txt"), "w", buffering=0)
attempt(open, ROOT)
attempt(open, at("nothing"))
attempt(open, at("no", "folder"), "w")
attempt(open, at("a.txt", "below"))
attempt(open(at("a.txt")).write, "x")
attempt(open(at("a.txt"), "a").read)
closed = open(at("a.txt"))
closed.close()
attempt(closed.read)

# Folders.
os.makedirs(at("d", "e", "f"))
pathlib.Path(at("d", "e", "f", "deep.txt")).write_text("deep")
pathlib.Path(at("d", "touched")).touch()
for what, args in ((os.mkdir, ["d"]), (os.rmdir, ["d"]), (os.remove, ["d"]), (os.rmdir, ["a.txt"]),
                   (os.listdir, ["a.txt"]), (os.listdir, ["nothing"]), (os.remove, ["nothing"]),
                   (os.stat, ["nothing"]), (os.mkdir, ["x" * 300])):
    attempt(what, at(*args))
for folder, folders, files in sorted((f, sorted(d), sorted(n)) for f, d, n in os.walk(ROOT)):
    print(name(folder), folders, files)
print(sorted(map(name, glob.glob(at("**", "*.txt"), recursive=True))))
print(sorted(map(name, pathlib.Path(ROOT).rglob("*.txt"))), sorted(e.name for e in os.scandir(ROOT) if e.is_file()))

# Names change, files go.
os.rename(at("a.txt"), at("d", "a.txt"))
os.replace(at("d", "touched"), at("sparse"))
print(os.path.getsize(at("sparse")), os.path.exists(at("d", "touched")))
attempt(os.rename, at("nothing"), at("else"))
attempt(os.rename, at("d"), at("d", "e", "below"))
attempt(os.rename, at("sparse"), at("d"))
shutil.copy(at("d", "a.txt"), at("copy"))
shutil.move(at("d"), at("moved"))
shutil.copytree(at("moved"), at("twin"))
shutil.rmtree(at("moved"))
kept = open(at("copy"))
os.remove(at("copy"))
print(repr(kept.read()), sorted(os.listdir(ROOT)), sorted(os.listdir(at("twin"))))

# Descriptors.
number = os.open(at("raw"), os.O_RDWR | os.O_CREAT | os.O_TRUNC)
print(os.write(number, b"12345"), os.lseek(number, 1, 0), os.read(number, 3), os.fstat(number).st_size)
os.ftruncate(number, 2)
os.close(number)
attempt(os.close, number)
print(open(at("raw")).read(), os.access(at("raw"), os.R_OK), os.access(at("nothing"), os.F_OK))
with open(at("raw"), "rb") as file:
    print(os.fstat(file.fileno()).st_size)

# The library.
with tempfile.NamedTemporaryFile(dir=ROOT, suffix=".tmp") as file:
    file.write(b"12")
    file.flush()
    print(os.path.getsize(file.name), os.path.basename(file.name)[-4:])
with open(at("t.csv"), "w", newline="") as file:
    csv.writer(file).writerows([["a", "b"], [1, "x,y"]])
print(list(csv.DictReader(open(at("t.csv")))))
with open(at("t.json"), "w") as file:
    json.dump({"a": [1, None]}, file)
print(json.load(open(at("t.json"))))
shutil.make_archive(at("packed"), "zip", at("twin"))
with zipfile.ZipFile(at("packed.zip"), "a") as pack:
    pack.writestr("more.txt", "more")
print(sorted(n for n in zipfile.ZipFile(at("packed.zip")).namelist() if not n.endswith("/")))
print(io.open is open, isinstance(open(at("raw"), "rb"), io.BufferedReader), isinstance(open(at("raw")), io.TextIOBase))
