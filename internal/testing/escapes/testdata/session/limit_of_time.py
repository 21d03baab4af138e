# attacks its session by setting a limit of processor time that ends it
# ends: variously
import resource
resource.setrlimit(resource.RLIMIT_CPU, (0, 0))
while True: pass
