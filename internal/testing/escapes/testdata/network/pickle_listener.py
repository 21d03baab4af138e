# connects as a worker of multiprocessing
# local: network seccomp landlock
from multiprocessing.connection import Client
import socket
socket.setdefaulttimeout(1)
Client(('127.0.0.1', CANARY_TCP)).send(1)
