# lowers its score for the out-of-memory killer
# fake: /proc/self/ oom_score_adj
# fresh: it may change its score
import os
os.write(os.open('/proc/self/oom_score_adj', os.O_WRONLY), b'-900')
print(CANARY_PROOF)
