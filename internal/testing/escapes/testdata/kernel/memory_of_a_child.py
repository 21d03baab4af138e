# reads a child's memory
# docker: seccomp
# local: seccomp
# with: syscall
import time
pid = os.fork()
if pid == 0:
    time.sleep(9)
    os._exit(0)
b = ctypes.create_string_buffer(64)
v = (ctypes.c_void_p * 2)(ctypes.addressof(b), 64)
try: syscall(310, 270, pid, v, 1, v, 1, 0)
finally: os.kill(pid, 9)
print(CANARY_PROOF)
