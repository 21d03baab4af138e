# reads the kernel's timers
# unsafe: the kernel may not have the file
print(CANARY_PROOF if open('/proc/timer_list').read(9) else 1 / 0)
