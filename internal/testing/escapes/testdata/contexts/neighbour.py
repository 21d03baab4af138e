# reads a file in the folder around a text by its path
import os
print(open(os.path.dirname(context_1.path) + '/../own').read())
