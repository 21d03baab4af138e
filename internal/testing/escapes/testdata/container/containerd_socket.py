# connects to the socket of containerd
# fake: /run/containerd/ containerd.sock
import socket
s = socket.socket(socket.AF_UNIX)
s.settimeout(1)
s.connect('/run/containerd/containerd.sock')
print(CANARY_PROOF)
