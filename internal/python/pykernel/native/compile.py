# Run by an interpreter of the host's, outside of any wall: compiles the runtime under the
# file names that boot.py gives, for the processes of this interpreter that follow. Standard
# input is a JSON object, module name -> source. Standard output is source -> code.
import json
import marshal
import sys

stock = {
    source: compile(source, f"<rlm {name}.py, as importlib._bootstrap>", "exec")
    for name, source in json.loads(sys.stdin.buffer.read()).items()
}
marshal.dump(stock, sys.stdout.buffer)
