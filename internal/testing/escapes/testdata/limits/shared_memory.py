# fills 1.2 GiB of shared memory
# local: cgroup
# docker: limits
# harm: grows
# fresh: it ends its process
# ends: variously
import mmap
m = mmap.mmap(-1, 1200 << 20)
for i in range(0, len(m), 4096): m[i] = 1
print(CANARY_PROOF)
