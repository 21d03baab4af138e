# Runs as root in the image that is being built. It compiles every module ahead, because
# nothing can be written later, and prints what can be imported.
import compileall
import glob
import importlib
import importlib.util
import json
import marshal
import os
import pkgutil
import py_compile
import sys

folders = [p for p in sys.path if p.startswith("/usr/lib/python3")]
# Files that do not compile are kept: some packages have files for other versions.
for folder in folders:
    compileall.compile_dir(
        folder, maxlevels=30, quiet=2, workers=1, optimize=0, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH
    )

# The runtime is sent to each container. The version that the program which makes this
# image would send is compiled here, under the file names that boot.py gives, so that a
# start need not compile the same source.
stock = {}
for path in glob.glob("/build/kernel/*.py"):
    with open(path, encoding="utf-8", newline="") as file:
        source = file.read()
    stock[source] = compile(source, f"<rlm {os.path.basename(path)}, as importlib._bootstrap>", "exec")
os.makedirs("/usr/lib/rlm", exist_ok=True)
with open("/usr/lib/rlm/kernel", "wb") as file:
    marshal.dump(stock, file)

# A script of Debian's would do this: one file of all certificates.
os.makedirs("/etc/ssl/certs", exist_ok=True)
with open("/etc/ssl/certs/ca-certificates.crt", "wb") as bundle:
    for name in sorted(glob.glob("/usr/share/ca-certificates/**/*.crt", recursive=True)):
        with open(name, "rb") as file:
            bundle.write(file.read())


def there(name):
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return name in sys.builtin_module_names or name == "__main__"


names = {m.name for m in pkgutil.iter_modules(folders)}
packages = [m.name for m in pkgutil.iter_modules(["/usr/lib/python3/dist-packages"])]
for name in (*packages, "numpy.testing", "scipy.stats", "scipy.optimize", "pandas.io.excel", "lxml.html", "sqlite3", "ssl", "ctypes"):
    importlib.import_module(name)  # a library that is missing shows here
names |= {name for name in sys.stdlib_module_names | set(sys.builtin_module_names) if there(name)}
json.dump({"version": sys.version.split()[0], "modules": sorted(n for n in names if n.isidentifier() and not n.startswith("__"))}, sys.stdout)
