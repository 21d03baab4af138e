# attacks its session by executing another program
# ends: variously
import os
os.execv('/bin/sleep', ['sleep', '600'])
