# reaches os.open through a dotted attrgetter
import operator, tempfile
o = operator.attrgetter('_os.open')(tempfile)
print(__import__('os').read(o(CANARY_FILE, 0), 99).decode())
