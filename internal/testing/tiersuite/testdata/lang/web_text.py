# urllib.parse, html, html.parser, email headers, quoting.
import html
import html.parser
import urllib.parse as up
from email.message import EmailMessage
from email.parser import Parser
from http import HTTPStatus

u = up.urlsplit("https://user:pw@Host.org:8080/a/b;p?q=1&r=a%20b&q=2#frag")
print(u, u.hostname, u.port, u.username, u.geturl(), up.parse_qs(u.query), up.parse_qsl("a=&b=1", keep_blank_values=True), up.urlparse("//h/p;x?y").params)
print(up.quote("a b/é&?"), up.quote("a/b", safe=""), up.quote_plus("a b+c"), up.unquote("%C3%A9%20x%zz"), up.unquote_plus("a+b"), up.unquote_to_bytes("%ff"), up.urlencode({"q": "é x", "l": [1, 2]}, doseq=True), up.urlencode([("a", 1), ("a", "b&c")]))
print(up.urljoin("http://h/a/b/c", "../d?x#y"), up.urljoin("http://h/a", "//o/p"), up.urljoin("http://h/a/", "b"), up.urldefrag("http://h/#f"), up.urlunsplit(("http", "h", "/p", "q=1", "")))
for bad in ("http://[::1", "http://h:99999/", "http://h:x/"):
    try:
        print(up.urlsplit(bad).port)
    except ValueError as e:
        print(e)
print(html.escape("<a href='x'>\"&</a>"), html.escape("'", quote=False), html.unescape("&lt;&eacute;&#233;&#x1F600;&nbsp;&amp;amp; &unknown; &copy"))


class P(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.out = []

    def handle_starttag(self, t, attrs):
        self.out.append((t, dict(attrs)))

    def handle_endtag(self, t):
        self.out.append("/" + t)

    def handle_data(self, d):
        if d.strip():
            self.out.append(d)

    def handle_comment(self, c):
        self.out.append(f"#{c}")


p = P()
p.feed('<!DOCTYPE html><P class="x" hidden>Hi &amp; <b>b</b><br/><!-- c --><script>if (a<b) {}</script>')
p.feed("</p")
p.feed(">tail")
p.close()
print(p.out)
m = EmailMessage()
m["Subject"], m["To"] = "Grüße", "a@x.org, B <b@y.org>"
m.set_content("Hällo\n")
print(m.as_string())
q = Parser().parsestr("From: x\nSubject: =?utf-8?q?caf=C3=A9?=\n\nbody\n")
print(q["from"], q.get_payload(), HTTPStatus(404).phrase, HTTPStatus.OK == 200)
