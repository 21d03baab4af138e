# removes a text by its path
import os
os.remove(context_1.path)
