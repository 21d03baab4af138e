# attacks its session by blocking signals
# ends: variously
import signal
signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
while True: pass
