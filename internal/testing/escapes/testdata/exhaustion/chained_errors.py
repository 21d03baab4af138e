# raises an error with 100,000 causes
# harm: floods
# ends: variously
error = None
for i in range(100_000):
    try: raise ValueError('x' * 100) from error
    except ValueError as e: error = e
raise error
