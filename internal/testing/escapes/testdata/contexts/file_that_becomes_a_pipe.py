# waits for a file that has become a pipe
# harm: hangs
ask('pipe')
print(context['plain'])
