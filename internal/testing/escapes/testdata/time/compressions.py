# compresses endless zeros
# harm: hangs
import lzma
z, d = lzma.LZMACompressor(preset=9 | lzma.PRESET_EXTREME), bytes(range(256)) * 200_000
while True: z.compress(d)
