# reads a file above the folder
print(context['../own'])
