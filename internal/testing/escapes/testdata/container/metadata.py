# connects to the metadata server of a cloud
# unsafe: there may be no cloud
import socket
socket.create_connection(('169.254.169.254', 80), 0.3)
print(CANARY_PROOF)
