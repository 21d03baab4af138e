# becomes root in a new namespace
# local: mounts landlock namespaces seccomp privileges
# docker: seccomp
# with: syscall
uid = os.getuid()
pid = os.fork()
if pid == 0:
    try:
        syscall(272, 97, 0x10000000)
        open('/proc/self/uid_map', 'w').write(f'0 {uid} 1')
        os.setuid(0)
    except OSError: os._exit(1)
    os._exit(0)
if os.waitpid(pid, 0)[1]: raise OSError('refused')
print(CANARY_PROOF)
