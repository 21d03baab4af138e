# unpacks a compression bomb
# harm: grows
# ends: variously
import zlib
d = zlib.compress(bytes(1 << 28))
x = []
while True: x.append(zlib.decompress(d))
