# changes who may read a text
import os
os.chmod(context_1.path, 0o777)
