# signals a process of the host through a process descriptor
import os, signal
signal.pidfd_send_signal(os.pidfd_open(CANARY_VICTIM), 9)
import time
time.sleep(0.1)
