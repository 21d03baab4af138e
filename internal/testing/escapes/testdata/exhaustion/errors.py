# raises an error that is huge
# harm: floods
raise ValueError('x' * 12_000_000)
