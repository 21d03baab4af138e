# signals through a descriptor of the process
import os, signal
signal.pidfd_send_signal(os.pidfd_open(CANARY_VICTIM), 9)
import time
time.sleep(0.1)
