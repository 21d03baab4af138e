"""Makes `x = llm_query(p)` and `x = await llm_query(p)` both right.

A host function blocks and returns its value. In code that uses await, the same
call has to be a coroutine where something awaits it, directly or by way of a
list that asyncio.gather takes. Which of the two is meant shows in the source,
so it is settled there: the syntax tree is changed, the text never is.

  * a call that flows to an awaiting place starts a coroutine;
  * any other call in the body of a coroutine is awaited on the spot;
  * calls in plain functions stay as they are: they block.
"""

import ast
import asyncio

import hostcall
import sessionloop

START = "__rlm_start__"

# Calls whose arguments are awaited by the callee.
_AWAITERS = frozenset(
    "gather wait wait_for create_task ensure_future as_completed shield run run_until_complete "
    "run_coroutine_threadsafe start_soon".split()
)
_CONTAINERS = frozenset("list tuple set zip reversed enumerate iter next".split())
_GROWERS = frozenset(("append", "add", "extend", "insert", "appendleft", "put_nowait"))
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


async def _start(function, args, kwargs):
    if isinstance(function, hostcall.HostFunction):
        return await asyncio.get_running_loop().host_call(function, args, kwargs)
    value = function(*args, **kwargs)
    return await value if hasattr(value, "__await__") else value


def start(function, /, *args, **kwargs):
    """Starts a call that is awaited; the compiler inserts this."""
    return _start(function, args, kwargs)


_stock_gather = asyncio.gather


def gather(*awaitables, return_exceptions=False):
    """asyncio.gather that in a coroutine also takes values that are there already:
    what a plain function made of a host call."""
    if asyncio._get_running_loop() is None:
        return _stock_gather(*awaitables, return_exceptions=return_exceptions)
    return _stock_gather(*(a if hasattr(a, "__await__") or asyncio.isfuture(a) else _value(a) for a in awaitables),
                         return_exceptions=return_exceptions)


def gathered(values, return_exceptions=False):
    """Returns the values; awaitable ones are awaited concurrently."""
    if not any(hasattr(value, "__await__") for value in values):
        return values

    async def everything():
        return await gather(*values, return_exceptions=return_exceptions)

    return asyncio.run(everything())


async def _value(value):
    return value


def install():
    """Puts the tolerant gather in place."""
    sessionloop.put_in_place(gather, _stock_gather)
    asyncio.gather = gather


def wanted(source):
    """Reports whether a snippet's text may contain an await."""
    return "await" in source or "async" in source


def arrange(tree, names):
    """Changes tree in place; names are the host functions'."""
    scopes = list(_scopes(tree))
    starts, callees = set(), set()
    for scope in scopes:
        _mark(scope, names, starts, callees)
    for scope in scopes:
        if isinstance(scope.node, ast.FunctionDef) and scope.node.name in callees:
            for node in scope.nodes:
                if isinstance(node, ast.Return) and node.value is not None:
                    starts.update(id(c) for c in _elements(node.value) if _is_host(c, names))
    _Rewriter(names, starts).visit(tree)


def keep_value(tree, name):
    """Returns the tree, with a trailing expression assigned to name."""
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        last = tree.body[-1]
        target = ast.copy_location(ast.Name(name, ast.Store()), last)
        tree.body[-1] = ast.copy_location(ast.Assign([target], last.value), last)
    return tree


class _Scope:
    def __init__(self, node):
        self.node = node
        self.nodes = []  # all nodes of this scope, those of inner scopes left out


def _scopes(tree):
    pending = [tree]
    while pending:
        scope = _Scope(pending.pop())
        stack = list(ast.iter_child_nodes(scope.node))
        while stack:
            node = stack.pop()
            scope.nodes.append(node)
            if isinstance(node, _FUNCTIONS):
                pending.append(node)
            else:
                stack.extend(ast.iter_child_nodes(node))
        yield scope


def _is_host(node, names):
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names


def _elements(node):
    """The expressions whose values make up node's value: itself, or the items of
    a display, a comprehension, a conditional."""
    stack = [node]
    while stack:
        node = stack.pop()
        if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
            stack.extend(node.elts)
        elif isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp)):
            stack.append(node.elt)
        elif isinstance(node, ast.DictComp):
            stack.append(node.value)
        elif isinstance(node, ast.Dict):
            stack.extend(node.values)
        elif isinstance(node, ast.IfExp):
            stack.extend((node.body, node.orelse))
        elif isinstance(node, (ast.Starred, ast.NamedExpr)):
            stack.append(node.value)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Mult)):
            stack.extend((node.left, node.right))
        else:
            yield node


def _callee(call):
    func = call.func
    return func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")


def _mark(scope, names, starts, callees):
    """Adds to starts the calls of a scope that something awaits, and to callees
    the plain functions whose results are awaited."""
    awaited, variables = [], set()
    for node in scope.nodes:
        if isinstance(node, ast.Await):
            awaited.append(node.value)
        elif isinstance(node, ast.Call) and _callee(node) in _AWAITERS:
            awaited.extend(node.args)
    for place in awaited:
        _take(place, names, starts, callees, variables)
    _follow(scope.nodes, variables)
    for node in scope.nodes:
        for place in _flows(node, variables):
            _take(place, names, starts, callees, variables)


def _take(place, names, starts, callees, variables):
    for node in _elements(place):
        if isinstance(node, ast.Name):
            variables.add(node.id)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id in _CONTAINERS:
                for part in node.args:
                    _take(part, names, starts, callees, variables)
            else:
                (starts.add(id(node)) if node.func.id in names else callees.add(node.func.id))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            _take(node.func.value, names, starts, callees, variables)  # tasks.values(), tasks.pop()
        elif isinstance(node, (ast.Subscript, ast.Attribute)) and isinstance(node.value, ast.Name):
            variables.add(node.value.id)


def _follow(nodes, variables):
    """A loop over a list whose items are awaited: the list is meant as well."""
    for node in nodes:
        if isinstance(node, (ast.For, ast.comprehension)) and isinstance(node.iter, (ast.Name, ast.Call)):
            targets = {n.id for n in ast.walk(node.target) if isinstance(n, ast.Name)}
            if targets & variables:
                source = node.iter
                while isinstance(source, ast.Call) and source.args:
                    source = source.args[0]  # enumerate(tasks), zip(tasks, ...)
                if isinstance(source, ast.Name):
                    variables.add(source.id)


def _flows(node, variables):
    """The expressions that node puts into one of the variables."""
    def among(target):
        if isinstance(target, (ast.Subscript, ast.Attribute)):
            target = target.value
        return isinstance(target, ast.Name) and target.id in variables

    if isinstance(node, ast.Assign):
        if any(among(t) for t in node.targets):
            yield node.value
        for target in node.targets:
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                yield from (v for t, v in zip(target.elts, node.value.elts) if among(t))
    elif isinstance(node, (ast.AnnAssign, ast.AugAssign, ast.NamedExpr)):
        if node.value is not None and among(node.target):
            yield node.value
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr in _GROWERS and among(node.func.value):
            yield from node.args


class _Rewriter(ast.NodeTransformer):
    def __init__(self, names, starts):
        self.names, self.starts = names, starts
        self.asynchronous = False

    def visit_Module(self, node):
        self.asynchronous = any(
            isinstance(n, (ast.Await, ast.AsyncFor, ast.AsyncWith)) or isinstance(n, ast.comprehension) and n.is_async
            for n in next(_scopes(node)).nodes
        )
        return self.generic_visit(node)

    def _inner(self, node, asynchronous):
        outer, self.asynchronous = self.asynchronous, asynchronous
        node = self.generic_visit(node)
        self.asynchronous = outer
        return node

    def visit_AsyncFunctionDef(self, node):
        return self._inner(node, True)

    def visit_FunctionDef(self, node):
        return self._inner(node, False)

    visit_Lambda = visit_GeneratorExp = visit_ClassDef = visit_FunctionDef

    def visit_Await(self, node):
        value = node.value
        self.generic_visit(node)
        # An awaited call has just been made a start; do not await it twice.
        if isinstance(node.value, ast.Await) and id(value) not in self.starts:
            return node.value
        return node

    def visit_Call(self, node):
        host, started = _is_host(node, self.names), id(node) in self.starts
        self.generic_visit(node)
        if not host or not (started or self.asynchronous):
            return node
        function = ast.copy_location(ast.Name(START, ast.Load()), node.func)
        call = ast.copy_location(ast.Call(function, [node.func, *node.args], node.keywords), node)
        return call if started else ast.copy_location(ast.Await(call), node)
