def _rlm_call(source, name, values, wanted):
    """Runs source as the body of a function of values; the result is what it
    returns, else its variable called wanted."""
    import ast
    import linecache

    file = f"<snippet {name}>"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    body = ast.parse(source, file).body
    if wanted:
        body += ast.parse(f"return locals().get({wanted!r})").body
    shell = ast.parse(f"def node({', '.join(values)}): pass", file)
    shell.body[0].body = body or shell.body[0].body
    names = dict(globals())
    exec(compile(ast.fix_missing_locations(shell), file, "exec"), names)
    return names["node"](**values)


FINAL(_rlm_call(**_rlm_given))
