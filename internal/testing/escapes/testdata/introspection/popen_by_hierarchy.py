# finds subprocess among the subclasses of object
import subprocess
c = [c for c in object.__subclasses__() if c.__name__ == 'Popen'][0]
print(c(['cat', CANARY_FILE], stdout=-1).communicate()[0].decode())
