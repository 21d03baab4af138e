# attacks its session by signals that are blocked
# ends: variously
import signal
signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
while True: pass
