# fills a text up to a width of a billion letters
# harm: grows
# ends: variously
x = '%1000000000d' % 1
