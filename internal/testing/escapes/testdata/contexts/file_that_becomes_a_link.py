# reads a file that has become a link to one outside
ask('link')
print(context['plain'])
