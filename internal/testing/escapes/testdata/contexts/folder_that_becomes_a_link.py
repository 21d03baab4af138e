# reads through a folder that has become a link to one outside
ask('folder')
print(context['sub/own'])
