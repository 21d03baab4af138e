# loops after the host has cancelled it in a call
# harm: hangs
# ends: variously
try: ask('cancel')
except BaseException: pass
while True: pass
