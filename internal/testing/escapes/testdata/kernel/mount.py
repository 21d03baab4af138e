# mounts a file system
# local: seccomp landlock privileges
# root: it is the right of root
# docker: seccomp privileges
# with: syscall
pid = os.fork()
if pid == 0:
    os._exit(libc.unshare(0x00020000) or libc.mount(b'none', b'/tmp', b'tmpfs', 0, None) and 1)
if os.waitpid(pid, 0)[1]: raise OSError('refused')
print(CANARY_PROOF)
