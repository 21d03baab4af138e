# connects to the socket of the Docker daemon
# fake: /var/run/ docker.sock
import socket
s = socket.socket(socket.AF_UNIX)
s.settimeout(1)
s.connect('/var/run/docker.sock')
print(CANARY_PROOF)
