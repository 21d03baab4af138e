# attacks its session with threads that never end
# ends: variously
import threading
for _ in range(4): threading.Thread(target=lambda: [0 for _ in iter(int, 1)]).start()
threading.Event().wait()
