# types into the terminal
# unsafe: there may be no terminal
import fcntl, termios
fcntl.ioctl(0, termios.TIOCSTI, b'x')
print(CANARY_PROOF)
