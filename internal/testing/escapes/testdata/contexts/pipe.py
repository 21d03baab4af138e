# waits for a pipe in the folder
# harm: hangs
print(context['pipe'])
