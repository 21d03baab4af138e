# str methods over many scripts: character offsets, case, digits, normal forms.
import unicodedata as u

words = {
    "latin": "Straße éàü Ǆ ﬁ", "greek": "ΟΔΥΣΣΕΥΣ Ελλάδα", "cyrillic": "Привет Ёж", "arabic": "مرحبا بالعالم ٣٤", "hebrew": "שָׁלוֹם",
    "hindi": "नमस्ते दुनिया", "thai": "สวัสดีชาวโลก", "chinese": "你好,世界", "japanese": "こんにちは ｶﾅ", "korean": "안녕하세요",
    "emoji": "👩‍👩‍👧‍👦🇩🇪👍🏽", "gothic": "𐌰𐌱𐌲", "turkish": "İstanbul ığı", "math": "𝔘𝔫𝔦ℂ½²", "combining": "e\u0301a\u0308o\u0323\u0302",
}
for name, w in words.items():
    print(name, len(w), len(w.encode()), len(w.encode("utf-16-le")), w[1], w[-1], ascii(w[::-1][:4]))
    print("  ", w.upper(), w.lower(), w.title(), w.casefold(), w.swapcase())
    print("  ", w.find(w[2]), w.rfind(w[-1]), w.count(w[0]), w.split(), w.partition(w[2])[0], w.isalpha(), w.isprintable(), w.islower())
    print("  ", [len(u.normalize(f, w)) for f in ("NFC", "NFD", "NFKC", "NFKD")], [u.category(c) for c in w[:5]], u.name(w[0]))
    assert w.encode().decode() == w and w.encode("utf-16").decode("utf-16") == w and w.encode("utf-32").decode("utf-32") == w
    assert "".join(list(w)) == w and w[:3] + w[3:] == w and w in "x" + w + "y" and ("q" + w).find(w) == 1
    assert eval(repr(w)) == w and eval(ascii(w)) == w
print("٣٤".isdigit(), int("٣٤"), "²".isdigit(), "²".isdecimal(), "½".isnumeric(), "四".isnumeric(), "四".isdigit(), u.numeric("四"), u.digit("²"))
print("ß".upper(), "ﬁ".upper(), "ŉ".upper(), "İ".lower() == "i̇", "ΑΣ".lower(), "ΑΣ Σ".lower(), "ς".upper(), "Ǆ".title(), "ß".casefold() == "SS".casefold())
print("a\u3000b\u00a0c\u2003d".split(), "\u2029x\u0085y".splitlines(), "\ufeffbom".strip() == "\ufeffbom", "\u200b".isspace(), "x".center(5, "中"))
print(sorted(["é", "z", "a", "Z", "中", "😀", "\uffff"]), max("a😀\uffff"), "😀" > "\uffff", ord("😀"), chr(0x10FFFF).encode().hex())
print(u.normalize("NFC", "e\u0301") == "é", u.combining("\u0301"), u.east_asian_width("中"), u.bidirectional("א"), u.mirrored("("), u.lookup("GREEK SMALL LETTER ALPHA"), u.decomposition("é"), u.unidata_version)
print("naïve café".encode("ascii", "replace"), "naïve".encode("ascii", "ignore"), "é😀".encode("ascii", "backslashreplace"), "é".encode("ascii", "xmlcharrefreplace"), "é".encode("ascii", "namereplace"))
print("Привет".encode("cp1251").hex(), "日本".encode("shift_jis").hex(), "中文".encode("gb18030").hex(), "한".encode("euc_kr").hex(), "é".encode("latin-1"), "€".encode("cp1252"), "ü".encode("cp437"))
for raw in (b"\xff\xfe", b"\xc3", b"\xed\xa0\x80", b"ok\x80ok", b"\xf0\x9f\x98"):
    print(ascii(raw.decode("utf-8", "replace")), ascii(raw.decode("utf-8", "surrogateescape")), ascii(raw.decode("utf-8", "backslashreplace")), raw.decode("utf-8", "ignore"), raw.decode("utf-8", "surrogateescape").encode("utf-8", "surrogateescape") == raw)
def é(ñ):
    变量 = ñ * 2
    return 变量


ﬁ = 1  # identifiers are folded by NFKC
print(é(4), fi, "é".isidentifier(), "变量".isidentifier(), "😀".isidentifier())
