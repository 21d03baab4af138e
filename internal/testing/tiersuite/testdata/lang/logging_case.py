# logging into a string, configparser, tomllib, locale-free gettext.
import configparser
import io
import logging
import tomllib

s = io.StringIO()
h = logging.StreamHandler(s)
h.setFormatter(logging.Formatter("%(levelname)s:%(name)s:%(message)s"))
log = logging.getLogger("app.part")
log.addHandler(h)
log.setLevel(logging.INFO)
log.propagate = False
log.debug("hidden")
log.info("shown %d %s", 1, "é")
log.warning("%(k)s", {"k": "v"})
try:
    1 / 0
except ZeroDivisionError:
    log.error("failed", exc_info=False)
log.log(35, "odd level")
print(s.getvalue(), log.getEffectiveLevel(), log.isEnabledFor(10), logging.getLevelName(30), log.parent.name, log.name)


class F(logging.Filter):
    def filter(self, r):
        r.msg = r.msg.upper()
        return "DROP" not in r.msg


log.addFilter(F())
log.info("drop me")
log.info("keep me")
print(s.getvalue().splitlines()[-1])
log.removeHandler(h)
logging.getLogger("silent").addHandler(logging.NullHandler())
c = configparser.ConfigParser()
c.read_string("[a]\nx = 1\nY: two\nlist =\n  l1\n  l2\n[b]\nref = %(base)s/q\nbase = /p\nflag = yes\n")
print(c.sections(), dict(c["a"]), c.getint("a", "x"), c["b"]["ref"], c["b"].getboolean("flag"), c.get("a", "zz", fallback="fb"), c.has_option("a", "y"))
try:
    c["nope"]
except KeyError as e:
    print(e)
try:
    configparser.ConfigParser().read_string("x = 1")
except configparser.MissingSectionHeaderError as e:
    print(e.lineno)
o = io.StringIO()
c.write(o)
print(o.getvalue())
t = tomllib.loads('title = "é"\n[a.b]\nn = 1_000\nf = 1.5\nd = 2024-01-02T03:04:05Z\nl = [1, "x", {y = 2}]\n[[t]]\nk = true\n[[t]]\nk = false\n')
print(t)
try:
    tomllib.loads("a = \n")
except tomllib.TOMLDecodeError as e:
    print(e)
