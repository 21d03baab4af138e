# attacks its session by setting a limit of memory below what it has
# ends: variously
import resource
resource.setrlimit(resource.RLIMIT_AS, (1 << 20, 1 << 20))
while True: x = bytes(1 << 20)
