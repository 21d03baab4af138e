# renames a file of the host
# local: mounts landlock namespaces
import os
os.rename(CANARY_OPEN + '/doomed', CANARY_OPEN + '/moved')
