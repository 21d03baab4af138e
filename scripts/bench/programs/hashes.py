import hashlib
import zlib

data = bytes(range(256)) * 1500


def run():
    hashlib.sha256(data).hexdigest()
    assert zlib.decompress(zlib.compress(data)) == data
    zlib.crc32(data)
