# unpacks an archive with ../ in its paths
# local: mounts landlock namespaces
import os
try: os.chdir(CANARY_OPEN)
except OSError: pass
import io, tarfile
b = io.BytesIO()
with tarfile.open(fileobj=b, mode='w') as t:
    i = tarfile.TarInfo('../' * 20 + CANARY_OPEN.lstrip('/') + '/unpacked')
    i.size = 1
    t.addfile(i, io.BytesIO(b'x'))
b.seek(0)
t = tarfile.open(fileobj=b)
t.extraction_filter = lambda member, path: member
t.extractall('.')
