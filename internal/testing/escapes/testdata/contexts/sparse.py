# reads a file of 3 GiB that takes no place on the disk
# harm: grows
# ends: variously
x = str(context['sparse'])
