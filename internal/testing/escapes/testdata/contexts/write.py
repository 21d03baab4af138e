# writes to a text by its path
with open(context_1.path, 'r+') as f: f.write('changed')
