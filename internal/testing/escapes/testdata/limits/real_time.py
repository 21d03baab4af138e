# asks for real-time scheduling
# root: it is the right of root
import os
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
print(CANARY_PROOF)
