# sends a text to another tenant over an abstract socket
import socket
held = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
held.bind('\0rlm-for-others')
# in another sandbox
import socket
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.connect('\0rlm-for-others')
print(CANARY_PROOF)
