# reads a link to a file outside the folder
print(context['link'])
