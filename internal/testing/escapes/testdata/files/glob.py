# finds files by a pattern
# local: mounts landlock namespaces
import glob
found = glob.glob(CANARY_FOLDER + '/fil?')
print([open(n).read() for n in found] or 1 / 0)
