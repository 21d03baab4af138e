# maps a file of the host into memory
# local: mounts landlock namespaces
import mmap, os
print(mmap.mmap(os.open(CANARY_FILE, os.O_RDONLY), 0, prot=mmap.PROT_READ)[:].decode())
