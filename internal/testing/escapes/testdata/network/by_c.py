# connects with the C library
# local: network seccomp landlock
import ctypes, struct
c = ctypes.CDLL(None)
fd = c.socket(2, 1, 0)
if fd < 0 or c.connect(fd, struct.pack('=HH', 2, 0)[:2] + struct.pack('!H', CANARY_TCP) + bytes([127, 0, 0, 1]) + bytes(8), 16): raise OSError('refused')
