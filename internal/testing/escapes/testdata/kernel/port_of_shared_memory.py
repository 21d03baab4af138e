# maps pages of a file in another order (remap_file_pages)
# docker: seccomp
# local: seccomp
# with: syscall
import mmap
f = os.open('/tmp/pages', os.O_RDWR | os.O_CREAT, 0o600)
os.ftruncate(f, 1 << 16)
m = mmap.mmap(f, 1 << 16)
at = ctypes.addressof(ctypes.c_char.from_buffer(m))
syscall(216, 234, ctypes.c_void_p(at), 4096, 0, 3, 0)
print(CANARY_PROOF)
