# opens the core pattern of the kernel for writing
# root: the setting is root's
# docker: masks privileges seccomp
open('/proc/sys/kernel/core_pattern', 'r+')
print(CANARY_PROOF)
