# hashlib, hmac, zlib checksums, base64 and friends, binascii.
import base64
import binascii
import hashlib
import hmac
import zlib

for name in ("md5", "sha1", "sha224", "sha256", "sha384", "sha512", "sha3_256", "blake2b", "blake2s"):
    h = hashlib.new(name)
    h.update(b"hello ")
    h.update("wörld".encode())
    print(name, h.hexdigest(), h.digest_size, h.block_size, h.copy().hexdigest() == h.hexdigest())
print(hashlib.sha256().hexdigest(), hashlib.sha256(b"x" * 10 ** 6).hexdigest(), hashlib.blake2b(b"k", digest_size=8, key=b"key").hexdigest(), hashlib.shake_128(b"s").hexdigest(10))
print(hmac.new(b"key", b"msg", "sha256").hexdigest(), hmac.compare_digest("a", "a"), hmac.digest(b"k", b"m", "sha1").hex())
b = bytes(range(0, 256, 7)) + "é😀".encode()
for enc, dec in ((base64.b64encode, base64.b64decode), (base64.urlsafe_b64encode, base64.urlsafe_b64decode), (base64.b32encode, base64.b32decode), (base64.b16encode, base64.b16decode), (base64.b85encode, base64.b85decode), (base64.a85encode, base64.a85decode), (base64.encodebytes, base64.decodebytes), (binascii.hexlify, binascii.unhexlify), (base64.z85encode, base64.z85decode), (base64.b32hexencode, base64.b32hexdecode)):
    e = enc(b[:40] if enc.__name__ != "z85encode" else b[:40])
    print(e)
    assert dec(e) == b[:40]
print(base64.b64decode("aGk="), base64.b64encode(b"a"), base64.b64decode("a G\nk="), base64.b64decode("_-8=", altchars=b"-_"))
for bad in (lambda: base64.b64decode("abc"), lambda: base64.b64decode("a*b=", validate=True), lambda: base64.b32decode("x"), lambda: binascii.unhexlify("abc"), lambda: binascii.unhexlify("zz"), lambda: hashlib.new("nope"), lambda: hashlib.sha256("str"), lambda: base64.b64encode("str"), lambda: base64.b85decode("~~~~~~")):
    try:
        print(bad())
    except (ValueError, TypeError) as e:
        print(type(e).__name__, e)
print(zlib.crc32(b"abc"), zlib.adler32(b"abc"), binascii.crc32(b"abc", 5), binascii.crc_hqx(b"abc", 0), binascii.b2a_base64(b"x", newline=False), binascii.b2a_qp(b"a=\xff"), sorted({"md5", "sha256"} & hashlib.algorithms_guaranteed))
