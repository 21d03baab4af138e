# makes itself the judge of a child's system calls
# docker: seccomp
# local: seccomp
# with: syscall
libc.prctl(38, 1, 0, 0, 0)
code = (ctypes.c_uint64 * 1)(0x7fff000000000006)
program = (ctypes.c_uint64 * 2)(1, ctypes.addressof(code))
pid = os.fork()
if pid == 0:
    try: os.close(syscall(317, 277, 1, 8, program))
    except OSError: os._exit(1)
    os._exit(0)
if os.waitpid(pid, 0)[1]: raise OSError('refused')
print(CANARY_PROOF)
