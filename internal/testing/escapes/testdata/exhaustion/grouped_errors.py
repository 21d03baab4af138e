# raises a group of a million errors
# harm: floods
# ends: variously
raise ExceptionGroup('x' * 50, [ExceptionGroup('y' * 50, [ValueError('z' * 50)] * 1000)] * 1000)
