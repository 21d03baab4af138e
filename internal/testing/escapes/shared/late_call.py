import time
def start():
    try:
        import threading
        threading.Thread(target=ask, args=('late',), daemon=True).start()
        time.sleep(0.1)
    except RuntimeError:
        import _rlm
        _rlm.call('sask\0[["late"],{}]')
