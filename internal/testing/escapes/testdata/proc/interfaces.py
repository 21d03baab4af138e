# lists the network interfaces of the machine
# fake: /sys/class/ net/eth0
import os
print(CANARY_PROOF if set(os.listdir('/sys/class/net')) - {'lo'} else 1 / 0)
