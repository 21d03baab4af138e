# makes a socket to the host of a virtual machine
# unsafe: the kernel may have none
import socket
socket.socket(40, 1)
print(CANARY_PROOF)
