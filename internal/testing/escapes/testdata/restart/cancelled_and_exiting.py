# ends its process after the host has cancelled it in a call
# harm: hangs
# ends: variously
import os
try: ask('cancel')
finally: os._exit(3)
