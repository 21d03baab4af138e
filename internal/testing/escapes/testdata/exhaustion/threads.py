# computes in endless threads
# harm: hangs
# ends: variously
import threading
for _ in range(4): threading.Thread(target=lambda: [0 for _ in iter(int, 1)]).start()
threading.Event().wait()
