# traces a child
# local: seccomp
# with: syscall
import time
pid = os.fork()
if pid == 0:
    time.sleep(9)
    os._exit(0)
try: syscall(101, 117, 16, pid, 0, 0)
finally: os.kill(pid, 9)
print(CANARY_PROOF)
