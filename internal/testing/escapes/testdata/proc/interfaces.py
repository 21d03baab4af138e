# lists the network interfaces of the machine
# unsafe: the machine may have none
import os
print(CANARY_PROOF if set(os.listdir('/sys/class/net')) - {'lo'} else 1 / 0)
