# makes a socket between a virtual machine and its host
# where: the kernel has them
import socket
socket.socket(40, 1)
print(CANARY_PROOF)
