# opens a socket to the kernel's ciphers
# where: the kernel has them
import socket
socket.socket(38, 5)
print(CANARY_PROOF)
