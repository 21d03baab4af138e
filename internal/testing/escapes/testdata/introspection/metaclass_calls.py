# calls a function with a subscript of a metaclass
class M(type): __getitem__ = staticmethod(open)
class A(metaclass=M): pass
print(A[CANARY_FILE].read())
