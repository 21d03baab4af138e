# reads through a link to the folder outside
print(context['up/own'])
