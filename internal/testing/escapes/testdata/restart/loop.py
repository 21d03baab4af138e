# loops while the host answers a call
# harm: hangs
# ends: variously
# with: late_call
start()
while True:
    try:
        while True: pass
    except BaseException: pass
