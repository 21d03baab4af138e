# sleeps
# harm: hangs
import time
time.sleep(3600)
