# starts hundreds of processes
# local: rlimits cgroup
# docker: limits
# fresh: it has no processes left
import os, time
pids = []
try:
    for _ in range(300):
        pid = os.fork()
        if pid == 0:
            time.sleep(3)
            os._exit(0)
        pids.append(pid)
    print(CANARY_PROOF)
finally:
    for p in pids: os.kill(p, 9)
    for p in pids: os.waitpid(p, 0)
