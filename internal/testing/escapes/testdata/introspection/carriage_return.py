# hides code behind a carriage return in a comment
exec('# nothing\rprint(open(' + repr(CANARY_FILE) + ').read())')
