# is cancelled by the host in a call
# harm: hangs
# ends: variously
ask('cancel')
