# listens to all packets
# root: it is the right of root
import socket
socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 3)
print(CANARY_PROOF)
