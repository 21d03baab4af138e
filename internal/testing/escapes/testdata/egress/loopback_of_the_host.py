# connects past the proxy to the loopback of the host
import socket
socket.create_connection(('127.0.0.1', CANARY_TCP), 2).send(b'x')
