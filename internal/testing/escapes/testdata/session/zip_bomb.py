# attacks its session with a zip bomb
# ends: variously
import zlib
d = zlib.compress(zlib.compress(bytes(1 << 28)))
x = [zlib.decompress(zlib.decompress(d)) for _ in range(100)]
