# raises an error that is huge
# harm: floods
raise ValueError('x' * 50_000_000)
