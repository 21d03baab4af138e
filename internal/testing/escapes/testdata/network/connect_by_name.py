# connects to localhost
import socket
socket.create_connection(('localhost', CANARY_TCP), 2)
