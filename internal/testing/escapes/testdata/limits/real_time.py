# asks for real-time scheduling
# unsafe: the machine could hang
import os
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
print(CANARY_PROOF)
