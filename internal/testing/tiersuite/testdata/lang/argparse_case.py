# argparse over a list of arguments.
import argparse
import contextlib
import io
import shlex

p = argparse.ArgumentParser(prog="tool", description="Does things.", epilog="Bye.")
p.add_argument("src", help="where from")
p.add_argument("rest", nargs="*", type=int)
p.add_argument("-v", "--verbose", action="count", default=0)
p.add_argument("--mode", choices=["a", "b"], default="a")
p.add_argument("--flag", action=argparse.BooleanOptionalAction)
p.add_argument("--num", type=float, metavar="N")
p.add_argument("--kv", action="append", type=lambda s: tuple(s.split("=")))
print(p.parse_args(shlex.split("in 1 2 -vv --mode b --no-flag --num=2.5 --kv a=1 --kv b=2")))
print(vars(p.parse_args(["x"])), p.parse_known_args(["x", "--zz"]))
for bad in (["--mode", "c", "x"], ["x", "q"], ["x", "--num"]):
    err = io.StringIO()
    with contextlib.redirect_stderr(err):
        try:
            p.parse_args(bad)
        except SystemExit as e:
            print(e.code, err.getvalue().splitlines()[-1].split(" (choose from")[0])
print(p.format_usage())
print(p.format_help())
sub = argparse.ArgumentParser(prog="git", exit_on_error=False)
cmds = sub.add_subparsers(dest="cmd", required=True)
c = cmds.add_parser("commit", aliases=["ci"])
c.add_argument("-m", required=True)
g = cmds.add_parser("log").add_mutually_exclusive_group()
g.add_argument("--short", action="store_true")
g.add_argument("--long", action="store_true")
print(sub.parse_args(["ci", "-m", "msg"]), sub.parse_args(["log", "--long"]))
try:
    argparse.ArgumentParser(exit_on_error=False).parse_args([]) and p
    q = argparse.ArgumentParser(exit_on_error=False)
    q.add_argument("-n", type=int)
    q.parse_args(["-n", "x"])
except argparse.ArgumentError as e:
    print(e)
print(shlex.split("a 'b c' \"d\\\"e\" f\\ g # no", comments=True), shlex.quote("it's"), shlex.join(["a b", "c"]))
