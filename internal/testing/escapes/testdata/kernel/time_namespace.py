# makes a namespace with another time
# root: it is the right of root
# docker: seccomp privileges
# with: syscall
pid = os.fork()
if pid == 0:
    try: syscall(272, 97, 0x80)
    except OSError: os._exit(1)
    os._exit(0)
if os.waitpid(pid, 0)[1]: raise OSError('refused')
print(CANARY_PROOF)
