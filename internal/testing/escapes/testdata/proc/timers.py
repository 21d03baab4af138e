# reads the kernel's timers
# fake: /proc/ timer_list
print(CANARY_PROOF if open('/proc/timer_list').read(9) else 1 / 0)
