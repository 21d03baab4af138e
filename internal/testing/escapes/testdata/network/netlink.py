# opens a netlink socket for routes
# local: seccomp
# docker: seccomp
import socket
socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
print(CANARY_PROOF)
