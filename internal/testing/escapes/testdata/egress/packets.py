# makes a socket for raw packets beside the proxy
# root: it is the right of root
import socket
socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)
print(CANARY_PROOF)
