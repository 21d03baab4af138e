# listens on a port of loopback for another tenant
import socket
held = socket.create_server(('127.0.0.1', 0))
print(held.getsockname()[1])
# in another sandbox
import socket
socket.create_connection(('127.0.0.1', int(CANARY_SAID)), 1)
print(CANARY_PROOF)
