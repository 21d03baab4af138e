# raises an exception with a huge message
# harm: floods
raise ValueError('x' * 12_000_000)
