# xml.etree: parse, search, build, serialise, errors.
import io
import xml.etree.ElementTree as ET
from xml.dom import minidom
from xml.sax.saxutils import escape, quoteattr

doc = '<?xml version="1.0"?><r a="1" xmlns:n="urn:n"><!-- c --><i k="x">é &amp; <b>bold</b> tail</i><n:j/><i k="y"><![CDATA[<raw>]]></i></r>'
r = ET.fromstring(doc)
print(r.tag, r.attrib, [c.tag for c in r], [i.text for i in r.findall("i")], r.find("i/b").tail, r.findtext("i[@k='y']"), r.find("nope"), len(r), r[0].get("k"), r.get("z", "d"), "".join(r.itertext()), r.find("n:j", {"n": "urn:n"}).tag, [e.tag for e in r.iter()])
n = ET.SubElement(r, "new", {"q": '"<>'})
n.text, n.tail = "t<x>", "\n"
r.remove(r[1])
r.set("b", "2")
print(ET.tostring(r, encoding="unicode"), ET.tostring(n), ET.tostring(ET.Element("é"), encoding="unicode"))
t = ET.ElementTree(r)
f = io.BytesIO()
t.write(f, encoding="utf-8", xml_declaration=True)
print(f.getvalue())
ET.indent(t)
print(ET.tostring(r, encoding="unicode"), ET.canonicalize('<a z="1" b="2"/>'))
for bad in ("<a>", "<a></b>", "", "<a>&nope;</a>", "<a b=1/>", "<a/><b/>", "\x00"):
    try:
        ET.fromstring(bad)
    except ET.ParseError as e:
        print(e, e.position)
print([(ev, e.tag) for ev, e in ET.iterparse(io.BytesIO(b"<a><b/><c>x</c></a>"), ["start", "end"])])
p = ET.XMLPullParser(["end"])
p.feed("<a><b>1</b>")
print([e.text for _, e in p.read_events()], escape("<&>"), quoteattr("a\"b"))
d = minidom.parseString("<x><y z='1'>t</y></x>")
print(d.documentElement.getElementsByTagName("y")[0].getAttribute("z"), d.toprettyxml(indent=" "))
rows = ET.fromstring("<rows>" + "".join(f"<row id='{i}'><v>{i * i}</v></row>" for i in range(200)) + "</rows>")
print(sum(int(v.text) for v in rows.iter("v")), len(rows.findall(".//row")), rows.find(".//row[@id='7']/v").text, rows.findall("row")[-1].attrib)
