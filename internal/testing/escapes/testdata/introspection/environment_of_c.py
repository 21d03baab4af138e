# reads the environment of the C library
import ctypes
c = ctypes.CDLL(None)
c.getenv.restype = ctypes.c_char_p
print(c.getenv(b'RLM_ESCAPE_CANARY').decode())
