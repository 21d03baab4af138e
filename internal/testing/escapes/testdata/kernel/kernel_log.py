# reads the kernel's log
# root: it is the right of root
# with: syscall
if libc.klogctl(10, None, 0) < 0: raise OSError('refused')
print(CANARY_PROOF)
