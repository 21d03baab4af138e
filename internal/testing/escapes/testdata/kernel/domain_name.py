# sets the domain of the machine
# root: it is the right of root
# with: syscall
name = os.uname()
libc.getdomainname(held := ctypes.create_string_buffer(65), 65)
syscall(171, 162, held, len(held.value))
print(CANARY_PROOF)
