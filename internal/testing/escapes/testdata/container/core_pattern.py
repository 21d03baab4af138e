# opens the core pattern to write
# root: the setting is root's
# docker: masks privileges seccomp
open('/proc/sys/kernel/core_pattern', 'r+')
print(CANARY_PROOF)
