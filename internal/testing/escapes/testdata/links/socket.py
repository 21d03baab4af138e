# leaves a socket
import os
os.chdir(CANARY_OUT)
import socket
s = socket.socket(socket.AF_UNIX)
s.bind('socket')
