# Code made at run time has no source lines to quote.
code = compile("def inner():\n    return 1 / 0\n", "<made up>", "exec")
exec(code)
inner()
