# asks its parent to trace it
# local: seccomp
# with: syscall
pid = os.fork()
if pid == 0:
    try: syscall(101, 117, 0, 0, 0, 0)
    except OSError: os._exit(1)
    os._exit(0)
if os.waitpid(pid, 0)[1]: raise OSError('refused')
print(CANARY_PROOF)
