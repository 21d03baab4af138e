# attacks its session with the header of a huge frame
# ends: variously
import os
os.write(3, b'\xff\xff\xff\xffq')
