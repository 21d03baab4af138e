# Runs as root in a container of the image python. It says which packages the image has, waits
# until the host has put further ones beside them, and compiles these ahead, because nothing
# can be written later. It imports none of them: they are hostile.
import compileall
import importlib.metadata
import json
import py_compile
import sys

# The image consists of Debian's packages alone.
packages = {d.metadata["Name"]: d.version for d in importlib.metadata.distributions() if d.metadata["Name"]}
print(json.dumps({"version": sys.version.split()[0], "packages": packages}), flush=True)
if not sys.stdin.readline():
    sys.exit("the host gave up")

# Files that do not compile are kept: some packages have files for other versions.
compileall.compile_dir(
    "/usr/lib/rlm/packages", maxlevels=30, quiet=2, workers=1, optimize=0,
    invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH
)
