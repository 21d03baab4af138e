# expands tabs to a hundred million spaces
# harm: grows
# ends: variously
x = ('\t' * 20).expandtabs(100_000_000)
