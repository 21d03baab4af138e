def _rlm_call(source, name, values):
    """Runs source as the body of a function of values. The result is a list with what it
    returns, or else with its variable result; the list is empty if there is neither."""
    import ast
    import linecache

    file = f"<snippet {name}>"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    body = ast.parse(source, file).body
    body += ast.parse("return locals().get('result', _rlm_nothing)").body
    shell = ast.parse(f"def node({', '.join(values)}): pass", file)
    shell.body[0].body = body
    nothing = object()
    names = dict(globals(), _rlm_nothing=nothing)
    exec(compile(ast.fix_missing_locations(shell), file, "exec"), names)
    value = names["node"](**values)
    return [] if value is nothing else [value]


_rlm_given = _rlm_call(**_rlm_given)
if _rlm_given:
    FINAL(_rlm_given[0])