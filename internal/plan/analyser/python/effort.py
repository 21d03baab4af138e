"""How long a snippet computes, as far as constants in its text show.

The unit is a nanosecond of native CPython 3.13. Only a loop whose bound is a constant
counts more than once, so the estimate is nearly always too low: a loop over data, a
while loop, a loop that is left early and a recursion count as one pass. It decides which
tier is faster, so a factor of two is good enough.
"""

import ast
import math

NODE, CALL = 7, 25  # a node of an expression, and a call
ITERATION, ITEM = 8, 10  # a pass through a loop, and an item consumed in C
MOST = 3600 * 10**9  # longer is all the same
HUGE = 1 << 64

# Builtins that consume an iterable in C, and those that stop in the middle of one.
CONSUMERS = frozenset("sum list tuple set frozenset sorted max min bytes bytearray".split())
STOPPERS = frozenset("any all next".split())
WRAPPERS = frozenset("enumerate reversed iter list tuple sorted".split())
LEAVES = (ast.Break, ast.Return, ast.Yield, ast.YieldFrom)
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


def effort(tree):
    """The nanoseconds that a module computes, and the line that takes most of them."""
    estimate = _Effort(tree)
    total, most, line = 0, 0, 0
    try:
        for statement in tree.body:
            cost = estimate.cost(statement)
            total += cost
            if cost > most:
                most, line = cost, estimate.line_of(statement)
    except RecursionError:
        return 0, 0
    return _rounded(min(total, MOST)), line


def _rounded(number):
    """Rounds to two digits, because the estimate is not more precise."""
    scale = 10 ** max(len(str(int(number))) - 2, 0)
    return int(number) // scale * scale


class _Effort:
    """An estimate for one tree."""

    def __init__(self, tree):
        self.constants = {}  # name -> the expression that it is bound to, once
        self.sizes, self.numbers = {}, {}  # what these expressions are, by name
        self.functions = {}  # name -> its definition at the top of the snippet
        self.known = {}  # function name -> what one call costs
        self.calling = set()  # functions whose cost is being found
        bindings = {}
        for node in ast.walk(tree):
            if node.__class__ is ast.Name and node.ctx.__class__ is not ast.Load:
                bindings[node.id] = bindings.get(node.id, 0) + 1
            elif node.__class__ is ast.arg:
                bindings[node.arg] = 2
        for node in tree.body:
            if node.__class__ in (ast.FunctionDef, ast.AsyncFunctionDef):
                self.functions[node.name] = node
            elif node.__class__ is ast.Assign and len(node.targets) == 1:
                target = node.targets[0]
                if target.__class__ is ast.Name and bindings[target.id] == 1:
                    self.constants[target.id] = node.value

    def line_of(self, statement):
        """Returns the line of the first loop in a statement, or of the statement."""
        if statement.__class__ is ast.If:
            return max(statement.body, key=self.cost).lineno
        return statement.lineno

    # --- what things cost ---

    def cost(self, node):
        """Returns the nanoseconds that one evaluation takes."""
        rule = RULES.get(node.__class__)
        return rule(self, node) if rule else NODE + self.children(node)

    def children(self, node):
        return sum(self.cost(child) for child in ast.iter_child_nodes(node))

    def block(self, statements):
        return sum(self.cost(statement) for statement in statements)

    def nothing(self, node):
        return 0

    def definition(self, node):
        return CALL

    def loop(self, node):
        trips = 1 if _is_left(node.body) else self.trips(node.iter)
        rounds = trips * (ITERATION + self.block(node.body))
        return self.cost(node.iter) + rounds + self.block(node.orelse)

    def comprehension(self, node):
        cost, trips = NODE, 1
        for generator in node.generators:
            cost += trips * self.cost(generator.iter)
            trips *= self.trips(generator.iter)
            cost += trips * (ITERATION + sum(map(self.cost, generator.ifs)))
            if generator.ifs:
                trips = 1  # how many pass is not known
        values = (node.key, node.value) if node.__class__ is ast.DictComp else (node.elt,)
        return cost + trips * sum(map(self.cost, values))

    def branch(self, node):
        """Returns the mean of both branches of an if statement."""
        test = node.test
        if any(n.__class__ is ast.Name and n.id == "__name__" for n in ast.walk(test)):
            return self.block(node.body)
        return self.cost(test) + (self.block(node.body) + self.block(node.orelse)) // 2

    def guarded(self, node):
        return self.block(node.body) + self.block(node.finalbody)

    def call(self, node):
        name = _name(node.func)
        if name in STOPPERS and node.args and node.args[0].__class__ is ast.GeneratorExp:
            return CALL + self.cost(node.args[0].elt)
        cost = CALL + self.children(node)
        if node.func.__class__ is ast.Name and name in self.functions:
            return cost + self.function(name)
        if name in CONSUMERS and node.args and node.args[0].__class__ is ast.Call:
            return cost + self.trips(node.args[0]) * ITEM
        if name == "factorial" and node.args:
            number = min(max(self.number(node.args[0]) or 0, 0), 1_000_000_000)
            return cost + int(number**1.7 * 0.28)
        if name == "pbkdf2_hmac" and len(node.args) > 3:
            return cost + max(self.number(node.args[3]) or 0, 0) * 200
        return cost

    def function(self, name):
        """Returns the cost of one call of a function of the snippet; a recursion counts once."""
        if name in self.calling:
            return 0
        if name not in self.known:
            self.calling.add(name)
            self.known[name] = self.block(self.functions[name].body)
            self.calling.discard(name)
        return self.known[name]

    # --- how many ---

    def trips(self, node):
        """Returns how often a loop over an expression runs, or 1 if that is unknown."""
        size = self.size(node)
        return 1 if size is None else max(size, 0)

    def size(self, node):
        """Returns the number of items of an expression, or None if it is unknown."""
        kind = node.__class__
        if kind is ast.Name:
            return self.constant(node.id, self.sizes, self.size)
        if kind in (ast.List, ast.Tuple, ast.Set):
            return len(node.elts)
        if kind is ast.Constant and node.value.__class__ in (str, bytes):
            return len(node.value)
        if kind is not ast.Call or not node.args:
            return None
        name = _name(node.func)
        if name in WRAPPERS:
            return self.size(node.args[0])
        return SIZES[name](self, node) if name in SIZES else None

    def constant(self, name, known, find):
        """Returns the result of find for the value of a name that is bound once."""
        if name not in known:
            known[name] = None  # while it is found: a name may be bound to itself
            known[name] = find(self.constants[name]) if name in self.constants else None
        return known[name]

    def range_size(self, node):
        bounds = [self.number(a) for a in node.args]
        if None in bounds or len(bounds) > 3 or bounds[2:] == [0]:
            return None
        start, stop, step = [0, *bounds, 1] if len(bounds) == 1 else [*bounds, 1][:3]
        return min(max(0, -(-(stop - start) // step)), HUGE)

    def product_size(self, node):
        sizes = [self.size(a) for a in node.args]
        repeat = next((self.number(k.value) for k in node.keywords if k.arg == "repeat"), 1)
        if None in sizes or repeat is None or not 0 <= repeat <= 64:
            return None
        return min(math.prod(sizes) ** repeat, HUGE)

    def choices(self, node, count):
        size = self.size(node.args[0])
        chosen = self.number(node.args[1]) if len(node.args) > 1 else size
        if size is None or chosen is None or not 0 <= chosen <= 64:
            return None
        return min(count(min(size, 1000), chosen), HUGE)

    def permutations_size(self, node):
        return self.choices(node, math.perm)

    def combinations_size(self, node):
        return self.choices(node, math.comb)

    def number(self, node):
        """Returns the integer value of a constant expression, or None."""
        kind = node.__class__
        if kind is ast.Constant:
            value = node.value
            if value.__class__ is float and value.is_integer() and abs(value) < HUGE:
                return int(value)
            return value if value.__class__ is int and abs(value) < HUGE else None
        if kind is ast.Name:
            return self.constant(node.id, self.numbers, self.number)
        if kind is ast.UnaryOp and node.op.__class__ is ast.USub:
            value = self.number(node.operand)
            return None if value is None else -value
        if kind is ast.BinOp and node.op.__class__ in ARITHMETIC:
            left, right = self.number(node.left), self.number(node.right)
            if left is None or right is None:
                return None
            return ARITHMETIC[node.op.__class__](left, right)
        if kind is ast.Call and _name(node.func) == "int" and len(node.args) == 1:
            return self.number(node.args[0])
        return None


def _name(func):
    """Returns the last part of a function's name."""
    return getattr(func, "id", None) or getattr(func, "attr", None)


def _is_left(statements):
    """Reports whether a loop with this body may be left early."""
    stack, inner = list(statements), ()
    while stack:
        node = stack.pop()
        if node.__class__ in LEAVES:
            return True
        if node.__class__ in (ast.For, ast.AsyncFor, ast.While):
            inner += (node,)
            stack += node.orelse
        elif node.__class__ not in SCOPES:
            stack += ast.iter_child_nodes(node)
    # A break leaves the inner loop alone.
    return any(n.__class__ in LEAVES[1:] for loop in inner for n in ast.walk(loop))


def _power(base, exponent):
    small = abs(base) < 1 << 16 and 0 <= exponent <= 64
    return min(base**exponent, HUGE) if small else None


def _shift(number, by):
    return number << by if 0 <= by <= 64 and abs(number) < HUGE else None


def _bounded(operation):
    return lambda left, right: max(-HUGE, min(operation(left, right), HUGE))


ARITHMETIC = {
    ast.Add: _bounded(int.__add__), ast.Sub: _bounded(int.__sub__),
    ast.Mult: _bounded(int.__mul__), ast.Pow: _power, ast.LShift: _shift,
    ast.FloorDiv: lambda left, right: left // right if right else None,
}

SIZES = {
    "range": _Effort.range_size, "product": _Effort.product_size,
    "permutations": _Effort.permutations_size, "combinations": _Effort.combinations_size,
}

RULES = {
    ast.For: _Effort.loop, ast.AsyncFor: _Effort.loop, ast.Call: _Effort.call,
    ast.If: _Effort.branch, ast.Try: _Effort.guarded, ast.TryStar: _Effort.guarded,
    ast.ListComp: _Effort.comprehension, ast.SetComp: _Effort.comprehension,
    ast.DictComp: _Effort.comprehension, ast.GeneratorExp: _Effort.comprehension,
    ast.FunctionDef: _Effort.definition, ast.AsyncFunctionDef: _Effort.definition,
    ast.ClassDef: _Effort.definition, ast.Lambda: _Effort.definition,
    ast.Constant: _Effort.nothing, ast.Load: _Effort.nothing, ast.Store: _Effort.nothing,
}
