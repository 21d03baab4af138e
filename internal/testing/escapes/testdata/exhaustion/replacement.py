# replaces each letter by many
# harm: grows
# ends: variously
x = ('a' * 30_000).replace('a', 'b' * 30_000)
