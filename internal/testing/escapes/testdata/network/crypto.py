# opens a socket to the kernel's ciphers
# unsafe: the kernel may have none
import socket
socket.socket(38, 5)
print(CANARY_PROOF)
