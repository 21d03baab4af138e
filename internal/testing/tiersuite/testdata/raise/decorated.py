# A wrapper's frame, a wide character before the anchor, an unpacking.
def deco(f):
    def wrapper(*a):
        return f(*a)
    return wrapper


@deco
def unpack(pair):
    名前 = "全角"; a, b, c = pair
    return a


unpack((1, 2))
