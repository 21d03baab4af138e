# reads what was written into a file while it is open
context_1[:10]
ask('rewrite')
print(context_1[100:5000])
