# unpacks an archive with a link that leads out of its folder
# local: mounts landlock namespaces
import os
try: os.chdir(CANARY_OPEN)
except OSError: pass
import io, tarfile
b = io.BytesIO()
with tarfile.open(fileobj=b, mode='w') as t:
    i = tarfile.TarInfo('out')
    i.type, i.linkname = tarfile.SYMTYPE, CANARY_OPEN
    t.addfile(i)
    i = tarfile.TarInfo('out/unpacked')
    i.size = 1
    t.addfile(i, io.BytesIO(b'x'))
b.seek(0)
t = tarfile.open(fileobj=b)
t.extraction_filter = lambda member, path: member
t.extractall('.')
