# reads the name of the host
# local: namespaces mounts network
# docker: names
import os
if os.uname().nodename == CANARY_HOST: print(CANARY_PROOF)
