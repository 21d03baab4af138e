# attacks its session by another program in its place
# ends: variously
import os
os.execv('/bin/sleep', ['sleep', '600'])
