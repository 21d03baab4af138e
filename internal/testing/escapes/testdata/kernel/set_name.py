# sets the name of the machine
# root: it is the right of root
# with: syscall
import socket
socket.sethostname(socket.gethostname())
print(CANARY_PROOF)
