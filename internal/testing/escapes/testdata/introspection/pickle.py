# unpickles an object that calls open
import pickle
class P:
    def __reduce__(self): return open, (CANARY_FILE,)
print(pickle.loads(pickle.dumps(P())).read())
