# starts hundreds of threads
# local: rlimits cgroup
# docker: limits
# fresh: it has no threads left
import threading, time
threading.stack_size(64 << 10)
for _ in range(300): threading.Thread(target=time.sleep, args=(2,), daemon=True).start()
print(CANARY_PROOF)
