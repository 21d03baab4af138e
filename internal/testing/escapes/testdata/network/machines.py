# makes a socket between a virtual machine and its host
# unsafe: the kernel may have none
import socket
socket.socket(40, 1)
print(CANARY_PROOF)
