# reads beyond the end of a file that was cut
# harm: kills
context_1[:10]
ask('truncate')
print(context_1[5_000_000:5_000_100])
