# reads a file with pathlib
# local: mounts landlock namespaces
import pathlib
print(pathlib.Path(CANARY_FILE).read_text())
