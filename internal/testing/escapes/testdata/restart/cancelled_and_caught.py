# continues after the host has cancelled it in a call
# harm: hangs
# ends: variously
while True:
    try: ask('cancel')
    except BaseException: pass
