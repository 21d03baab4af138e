# leaves a sparse file of 16 GiB
import os
os.chdir(CANARY_OUT)
os.truncate(os.open('big', os.O_CREAT | os.O_WRONLY), 1 << 34)
