# changes its root folder in a new namespace
# docker: seccomp
# local: seccomp
# with: syscall
pid = os.fork()
if pid == 0:
    try:
        syscall(272, 97, 0x10000000)
        os.chroot('/tmp')
    except OSError: os._exit(1)
    os._exit(0)
if os.waitpid(pid, 0)[1]: raise OSError('refused')
print(CANARY_PROOF)
