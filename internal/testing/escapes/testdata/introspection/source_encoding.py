# hides code in another encoding
exec(('# coding: utf-7\n' + '+AHAAcgBpAG4AdA-(open(' + repr(CANARY_FILE) + ').read())').encode())
