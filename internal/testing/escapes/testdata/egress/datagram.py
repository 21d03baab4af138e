# sends a datagram past the proxy
import socket
socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', CANARY_UDP))
