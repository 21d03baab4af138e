# connects to 0.0.0.0
# local: network seccomp landlock
import socket
socket.create_connection(('0.0.0.0', CANARY_TCP), 2)
