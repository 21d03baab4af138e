"""The rules of analyse.py for the kinds of node that need special treatment."""


def _other(walk, node):
    """Visits all children of a node without a rule, first to last."""
    for field in node._fields[::-1]:
        value = getattr(node, field, None)
        if isinstance(value, (AST, list)):
            walk.stack.append(value)


def _doubt(walk, node):
    walk.doubtful = True
    _other(walk, node)


# --- calls ---

def _call_open(walk, node, path):
    if node.args and isinstance(_text(node.args[0]), int):
        return  # a descriptor
    mode = node.args[1] if len(node.args) > 1 else _keyword(node, "mode")
    walk.need("files", f"{path}(..., {_text(mode)!r})" if _text(mode) else f"{path}(...)", node)


def _keyword(node, name):
    """Returns the value of a keyword argument, or None."""
    return next((k.value for k in node.keywords if k.arg == name), None)


def _call_import(walk, node, path):
    name = _text(node.args[0]) if node.args else None
    if isinstance(name, str):
        walk.imported(name, node.lineno)
    else:
        walk.need("dynamic", f"{path}(...)", node)


def _call_getattr(walk, node, _):
    base = walk.path(node.args[0]) if len(node.args) > 1 else None
    if base is None or base in ("Path", "str", "buffer") or base in RESULTS:
        return
    name = _text(node.args[1])
    if name is None:
        walk.need("dynamic", f"getattr({base}, ...)", node)
    elif f"{base}.{name}" in FEATURES:
        walk.need(FEATURES[f"{base}.{name}"], f"{base}.{name}", node)


def _call_basic_config(walk, node, _):
    name = _keyword(node, "filename")
    if name is not None and not (name.__class__ is Constant and name.value is None):
        walk.need("files", "logging.basicConfig(filename=...)", node)


def _call_range(walk, node, _):
    """Multiplies the bounds of all ranges: see _Walk.may_compute."""
    for bound in node.args[:2]:
        kind = bound.__class__
        if kind is Constant:
            if bound.value.__class__ is int and bound.value > 1:
                walk.rounds = min(walk.rounds * min(bound.value, LONG_LOOP), LONG_LOOP)
        elif kind in (Name, BinOp, ast.UnaryOp):
            walk.large = True
        elif kind is Call and getattr(bound.func, "id", None) == "int":
            walk.large = True


CALLS = {
    "open": _call_open, "import": _call_import, "getattr": _call_getattr, "range": _call_range,
    "basicConfig": _call_basic_config,
}


# --- imports ---

def _import(walk, node):
    for alias in node.names:
        walk.imported(alias.name, node.lineno)
        top = alias.name.partition(".")[0]
        path = (alias.name if alias.asname else top) if top in FOLLOWED else None
        walk.bind(alias.asname or top, path)


def _import_from(walk, node):
    module = node.module or ""
    walk.imported("." * node.level + module, node.lineno)
    if module == "__future__":
        walk.doubtful = True
    followed = not node.level and module.partition(".")[0] in FOLLOWED
    for alias in node.names:
        path = f"{module}.{alias.name}" if followed else None
        if alias.name == "*":
            walk.doubtful |= walk.kind is not None
            if followed:
                start = module + "."
                found = {p[len(start):]: p for p in FEATURES if p.startswith(start)}
                walk.names = {**walk.names, **found}
            continue
        if path in FEATURES and not walk.guards and walk.later is None:
            walk.need(FEATURES[path], path, node)  # a later snippet may use it
        walk.bind(alias.asname or alias.name, path)


# --- scopes ---

def _function(walk, node):
    args, name = node.args, node.name
    stack = walk.stack
    if node.__class__ is AsyncFunctionDef:
        walk.need("async", "async def", node)
    _define(walk, name)
    if node.type_params:
        walk.doubtful = True
        _shadow(walk, [p.name for p in node.type_params])
    parameters = _parameters(walk, args)
    stack.append((_enter, node, parameters))
    everything = (*args.posonlyargs, *args.args, args.vararg, *args.kwonlyargs, args.kwarg)
    stack.append([a.annotation for a in everything if a is not None and a.annotation is not None])
    if node.returns is not None:
        stack.append(node.returns)
    stack += (args.kw_defaults, args.defaults, node.decorator_list)
    if node.type_params:
        stack.append([p.bound for p in node.type_params if hasattr(p, "bound")])


def _define(walk, name):
    if walk.kind is None:
        walk.defines[name] = None
    walk.bind(name)


def _parameters(walk, args):
    names = [a.arg for a in args.args]
    if args.posonlyargs or args.kwonlyargs:
        names += [a.arg for a in (*args.posonlyargs, *args.kwonlyargs)]
    names += [a.arg for a in (args.vararg, args.kwarg) if a is not None]
    if len(set(names)) < len(names):
        walk.doubtful = True
    return names


def _class(walk, node):
    walk.need("classes", "class", node)
    if walk.kind is None:
        walk.defines[node.name] = None
    if node.type_params:
        walk.doubtful = True
        _shadow(walk, [p.name for p in node.type_params])
    walk.stack.append((_enter, node, ()))
    walk.stack += ([k.value for k in node.keywords], node.bases, node.decorator_list)


def _enter(walk, node, parameters):
    """Begins the scope of a function or class; _leave ends it."""
    outer = (
        walk.bound, walk.reads, walk.calls, walk.names, walk.declared, walk.kind, walk.loops,
        walk.guards, walk.lambdas, walk.methods, walk.later,
    )
    walk.stack.append((_leave, node, outer))
    _block(walk, node.body)
    walk.bound, walk.reads, walk.calls = dict.fromkeys(parameters), {}, {}
    walk.declared, walk.kind = (), node
    walk.loops = walk.lambdas = 0
    if node.__class__ is ClassDef:
        walk.methods = _Later()
    else:
        walk.guards, walk.methods = 0, None
        if walk.later is None:
            walk.later = _Later()
    for name in parameters:
        if name in walk.names:
            walk.forget(name)


def _leave(walk, node, outer):
    bound, reads, calls = walk.bound, walk.reads, walk.calls
    declared, methods, inner = walk.declared, walk.methods, walk.later
    (
        walk.bound, walk.reads, walk.calls, walk.names, walk.declared, walk.kind, walk.loops,
        walk.guards, walk.lambdas, walk.methods, walk.later,
    ) = outer
    for name, everywhere in declared:
        if bound.pop(name, walk) is None and everywhere:
            walk.written[name] = None
    for name in calls:
        if name not in bound:
            walk.calls[name] = None
    if node.__class__ is ClassDef:
        _read(walk, reads)
        later = methods
        walk.bind(node.name)
    else:
        later = _Later() if inner is walk.later else inner
        later.reads = tuple(n for n in reads if n not in bound)
    if walk.methods is not None:  # in a class
        walk.methods.reads = tuple(dict.fromkeys((*walk.methods.reads, *later.reads)))
        later.add_needs(walk.methods.imports, walk.methods.features)
    elif walk.kind is not None:
        _read(walk, later.reads)
        if walk.later is not None:
            later.add_needs(walk.later.imports, walk.later.features)
    elif later:
        walk.names = {**walk.names, node.name: later}
        if not all(map(_is_plain, node.decorator_list)):
            walk.use(node.name)


def _is_plain(decorator):
    """Reports whether a decorator is known not to call what it decorates."""
    node = getattr(decorator, "func", decorator)
    return (getattr(node, "attr", None) or getattr(node, "id", None)) in PLAIN_DECORATORS


def _read(walk, names):
    for name in names:
        if name not in walk.bound:
            walk.reads[name] = None
        if name in walk.names and walk.names[name].__class__ is _Later:
            walk.use(name)


def _shadow(walk, names):
    """Binds names only for the nodes that are pushed from now on."""
    new = [n for n in names if n not in walk.bound]
    if new:
        walk.bound.update(dict.fromkeys(new))
        walk.stack.append((_unshadow, new, None))


def _unshadow(walk, names, _):
    for name in names:
        walk.bound.pop(name, None)


def _lambda(walk, node):
    """Handles a lambda: it may run immediately, so its names are read now."""
    args = node.args
    walk.stack.append((_lambda_body, node, _parameters(walk, args)))
    walk.stack += (args.kw_defaults, args.defaults)


def _lambda_body(walk, node, parameters):
    walk.lambdas += 1
    walk.stack.append((_lambda_end, walk.names, None))
    _shadow(walk, parameters)
    for name in parameters:
        if name in walk.names:
            walk.forget(name)
    walk.stack.append(node.body)


def _lambda_end(walk, names, _):
    walk.lambdas -= 1
    walk.names = names


def _comprehension(walk, node):
    walk.comprehensions = True
    first = node.generators[0].iter
    if first.__class__ is Name and first.id not in walk.names:
        if first.id not in walk.bound:
            walk.reads[first.id] = None
        _comprehension_rest(walk, node, None)
    else:
        walk.stack += ((_comprehension_rest, node, None), first)


def _comprehension_rest(walk, node, _):
    stack, targets, parts, first = walk.stack, [], [], True
    for g in node.generators:
        _targets(g.target, targets, parts)
        walk.doubtful |= g.target.__class__ is Starred
        if not first:
            parts.append(g.iter)
        parts += g.ifs
        if g.is_async:
            _asynchronous(walk, node, "async comprehension")
        first = False
    _shadow(walk, targets)
    if node.__class__ is ast.DictComp:
        parts += (node.key, node.value)
    else:
        parts.append(node.elt)
    stack += parts[::-1]


def _targets(node, names, rest):
    """Returns the names that a target binds; its other parts go to rest."""
    if node.__class__ is Name:
        names.append(node.id)
    elif node.__class__ is Tuple or node.__class__ is ast.List:
        for part in node.elts:
            _targets(part, names, rest)
    elif node.__class__ is Starred:
        _targets(node.value, names, rest)
    else:
        rest.append(node)


def _generator(walk, node):
    walk.need("generators", "generator expression", node)
    _comprehension(walk, node)


def _type_alias(walk, node):
    walk.bind(node.name.id)
    walk.doubtful = True
    _shadow(walk, [p.name for p in node.type_params])
    walk.stack.append(node.value)


# --- statements ---

def _count(walk, name, step):
    setattr(walk, name, getattr(walk, name) + step)


def _within(walk, name, nodes):
    """Pushes nodes, and counts them as within something: a loop, a guard."""
    walk.stack += ((_count, name, -1), nodes, (_count, name, 1))


def _block(walk, body):
    """Pushes statements. What comes after one that goes elsewhere is not reached."""
    for at, node in enumerate(body, 1):
        if node.__class__ in LEAVING and at < len(body):
            _within(walk, "unreached", body[at:])
            body = body[:at]
            break
    walk.stack.append(body)


def _branch(walk, body, holds, sure):
    """Pushes statements that run if a condition holds, as far as that is known."""
    if holds is not False:
        _block(walk, body)
    else:
        _within(walk, "unreached" if sure else "unlikely", body)


def _if(walk, node):
    holds, sure = truth(walk, node.test)
    _branch(walk, node.orelse, None if holds is None else not holds, sure)
    _branch(walk, node.body, holds, sure)
    walk.stack.append(node.test)


def _annotated(walk, node):
    if node.value is not None:
        if node.target.__class__ is Name:
            walk.alias(node.target.id, node.value)
        walk.stack += (node.target, node.value)
    elif node.target.__class__ is not Name:
        walk.stack.append(node.target)
    walk.stack.append(node.annotation)


def _augmented(walk, node):
    target = node.target
    walk.stack += (target, node.value)
    if target.__class__ is Name and target.id not in walk.bound:
        walk.reads[target.id] = None


def _walrus(walk, node):
    walk.doubtful |= walk.comprehensions  # in one it may be an error
    walk.stack += (node.target, node.value)


def _loop(walk, node):
    if node.__class__ is ast.While:
        head, (holds, sure) = (node.test,), truth(walk, node.test)
    else:
        head, holds, sure = (node.target, node.iter), None, True
        if not getattr(node.iter, "elts", True):  # for x in []
            holds = False
    walk.stack += (node.orelse, (_count, "loops", -1))
    _branch(walk, node.body, holds, sure)
    walk.stack.append((_count, "loops", 1))
    walk.stack += head
    if node.__class__ is ast.AsyncFor:
        _asynchronous(walk, node, "async for")


def _jump(walk, node):
    walk.doubtful |= not walk.loops


def _with(walk, node):
    if node.__class__ is ast.AsyncWith:
        _asynchronous(walk, node, "async with")
    if any(_suppresses(item.context_expr) for item in node.items):
        _within(walk, "guards", node.body)
    else:
        _block(walk, node.body)
    walk.stack.append(node.items)


def _suppresses(node):
    func = getattr(node, "func", None)
    name = getattr(func, "attr", None) or getattr(func, "id", None)
    return name == "suppress" and any(_catches(a) for a in node.args)


def _catches(node):
    """Reports whether an except clause for this catches a failed import."""
    if node is None:
        return True
    if node.__class__ is Tuple:
        return any(_catches(n) for n in node.elts)
    return (getattr(node, "attr", None) or getattr(node, "id", None)) in CATCHES_IMPORT


def _try(walk, node):
    handlers = node.handlers
    if any(h.type is None for h in handlers[:-1]):
        walk.doubtful = True
    # A handler that ends in raise does not deal with the module's absence.
    guarded = any(_catches(h.type) and h.body[-1].__class__ is not ast.Raise for h in handlers)
    rest = [handlers, node.orelse]
    walk.stack.append(node.finalbody)
    if guarded and any(n.__class__ in IMPORTS for n in node.body):
        _within(walk, "unlikely", rest)  # the module of the body decides between the two
    else:
        walk.stack.append(rest)
    if guarded:
        _within(walk, "guards", node.body)
    else:
        _block(walk, node.body)


def _try_star(walk, node):
    walk.doubtful = True
    _try(walk, node)


def _handler(walk, node):
    if node.name:
        walk.stack += ((_unshadow, [node.name], None), node.body)
        walk.stack.append((_Walk.bind, node.name, None))
    else:
        walk.stack.append(node.body)
    walk.stack.append(node.type)


def _declare(walk, node):
    walk.doubtful = True
    if walk.kind is not None:
        walk.declared += tuple((name, node.__class__ is ast.Global) for name in node.names)


def _capture(walk, node):
    """Returns the names that patterns bind."""
    name = node.rest if node.__class__ is ast.MatchMapping else node.name
    if name:
        walk.bind(name)
    _other(walk, node)


def _asynchronous(walk, node, why):
    walk.need("async", why, node)
    inside = walk.kind is not None and walk.kind.__class__ is not AsyncFunctionDef
    walk.doubtful |= walk.lambdas > 0 or inside


def _await(walk, node):
    _asynchronous(walk, node, "await")
    walk.stack.append(node.value)


def _yield(walk, node):
    walk.need("generators", "yield", node)
    walk.doubtful |= not walk.lambdas and walk.kind.__class__ is not FunctionDef
    walk.stack.append(node.value)


def _return(walk, node):
    walk.doubtful |= walk.kind is None or walk.kind.__class__ is ClassDef
    walk.doubtful |= node.value.__class__ is Starred
    walk.stack.append(node.value)


def _pass(walk, node):
    pass


KINDS = {
    ast.Import: _import, ast.ImportFrom: _import_from,
    FunctionDef: _function, AsyncFunctionDef: _function, ClassDef: _class, ast.Lambda: _lambda,
    ast.ListComp: _comprehension, ast.SetComp: _comprehension, ast.DictComp: _comprehension,
    ast.GeneratorExp: _generator, ast.TypeAlias: _type_alias, ast.AnnAssign: _annotated,
    ast.AugAssign: _augmented, ast.NamedExpr: _walrus, ast.If: _if, ast.For: _loop, ast.AsyncFor: _loop,
    ast.While: _loop, ast.Break: _jump, ast.Continue: _jump, ast.With: _with, ast.AsyncWith: _with,
    ast.Try: _try, ast.TryStar: _try_star, ast.ExceptHandler: _handler,
    ast.Global: _declare, ast.Nonlocal: _declare, ast.Match: _doubt, ast.Starred: _doubt,
    ast.MatchAs: _capture, ast.MatchStar: _capture, ast.MatchMapping: _capture,
    ast.Await: _await, Yield: _yield, ast.YieldFrom: _yield, ast.Return: _return, ast.Pass: _pass,
}
