# connects to the socket of containerd
# unsafe: there may be no daemon
import socket
s = socket.socket(socket.AF_UNIX)
s.settimeout(1)
s.connect('/run/containerd/containerd.sock')
print(CANARY_PROOF)
