# csv readers, writers, dialects.
import csv
import io

text = 'id,name,note\r\n1,"Doe, Jane","said ""hi"""\r\n2,Zoë,"two\nlines"\r\n3,,\r\n'
rows = list(csv.reader(io.StringIO(text, newline="")))
print(rows)
print([dict(r) for r in csv.DictReader(io.StringIO(text, newline=""))])
out = io.StringIO()
w = csv.writer(out)
w.writerow(["a", 'q"q', "x,y", "l\nm", None, 1.5, True, ""])
w.writerows([[1, 2], ("é", "  pad ")])
print(repr(out.getvalue()))
assert list(csv.reader(io.StringIO(out.getvalue(), newline="")))[0][:4] == ["a", 'q"q', "x,y", "l\nm"]
for q in (csv.QUOTE_ALL, csv.QUOTE_MINIMAL, csv.QUOTE_NONNUMERIC, csv.QUOTE_STRINGS, csv.QUOTE_NOTNULL):
    o = io.StringIO()
    csv.writer(o, quoting=q, lineterminator="|").writerow(["s", 1, None, ""])
    print(repr(o.getvalue()))
print(list(csv.reader(["a\tb c", "'x y'\t"], delimiter="\t", quotechar="'")), list(csv.reader(["1;2,5"], delimiter=";", quoting=csv.QUOTE_NONE)), list(csv.reader(['1,"a"'], quoting=csv.QUOTE_NONNUMERIC)), list(csv.reader(["a, b"], skipinitialspace=True)), list(csv.reader(["a\\,b,c"], escapechar="\\")))
o = io.StringIO()
dw = csv.DictWriter(o, ["x", "y"], restval="-", extrasaction="ignore", lineterminator="\n")
dw.writeheader()
dw.writerow({"x": 1, "z": 9})
print(repr(o.getvalue()))
try:
    csv.DictWriter(io.StringIO(), ["x"]).writerow({"q": 1})
except ValueError as e:
    print(e)


class Pipes(csv.Dialect):
    delimiter, quotechar, lineterminator, quoting = "|", "'", "\n", csv.QUOTE_MINIMAL


csv.register_dialect("pipes", Pipes)
print("pipes" in csv.list_dialects(), list(csv.reader(["a|'b|c'"], "pipes")), csv.get_dialect("excel").delimiter)
r = csv.reader(["h1,h2", "", "1,2,3", "x"])
print(next(r), r.line_num, list(r), r.line_num)
print(list(csv.DictReader(["a,b", "1,2,3", "4"], restkey="more", restval="none")), csv.DictReader(["1,2"], fieldnames=["p", "q"]).fieldnames)
print(csv.Sniffer().sniff("a;b;c\n1;2;3\n4;5;6\n").delimiter, csv.Sniffer().has_header("name,age\nbob,5\nann,6\n"))
for bad in (lambda: list(csv.reader(['"a'], strict=True)), lambda: csv.reader([], delimiter="ab"), lambda: csv.writer(io.StringIO(), quoting=csv.QUOTE_NONE, escapechar=None).writerow(["a,b"]), lambda: list(csv.reader([1])), lambda: list(csv.reader(["1,x"], quoting=csv.QUOTE_NONNUMERIC)), lambda: csv.get_dialect("none"), lambda: csv.field_size_limit("x")):
    try:
        print(bad())
    except (csv.Error, TypeError, ValueError) as e:
        print(type(e).__name__, e)
table = "\n".join(f"{i},{i * i},n{i % 7}" for i in range(1000))
sums = {}
for i, sq, n in csv.reader(table.splitlines()):
    sums[n] = sums.get(n, 0) + int(sq)
print(sums)
