# Enum, IntEnum, StrEnum, Flag, auto, aliases.
from enum import Enum, Flag, IntEnum, IntFlag, StrEnum, auto, unique, nonmember


class Color(Enum):
    RED = 1
    GREEN = 2
    CRIMSON = 1

    @property
    def nice(self):
        return self.name.title()

    @classmethod
    def default(cls):
        return cls.GREEN


print(list(Color), Color(2), Color["RED"], Color.CRIMSON is Color.RED, Color.RED.nice, Color.default())
print(repr(Color.RED), str(Color.RED), f"{Color.RED}", Color.RED.value, list(Color.__members__))
for bad in (lambda: Color(9), lambda: Color["PINK"], lambda: setattr(Color, "RED", 3)):
    try:
        bad()
    except (ValueError, KeyError, AttributeError) as e:
        print(type(e).__name__, e)


class Level(IntEnum):
    LOW = auto()
    HIGH = auto()


print(Level.LOW < Level.HIGH, Level.HIGH + 1, sorted(Level, reverse=True), f"{Level.LOW}", repr(Level.LOW))


class Mode(StrEnum):
    READ = auto()
    WRITE = "w"


print(Mode.READ, Mode.WRITE == "w", "x" + Mode.READ, repr(Mode.WRITE))


class Perm(Flag):
    R = auto()
    W = auto()
    X = auto()
    RW = R | W


print(Perm.R | Perm.X, Perm.RW & Perm.W, ~Perm.R, Perm.R in Perm.RW, Perm(0), bool(Perm(0)), list(Perm.RW), Perm(7))
print(repr(Perm.RW), Perm.RW ^ Perm.R, len(Perm.RW))


class I(IntFlag):
    A = 1
    B = 4


print(I.A | I.B, I.A | 8, I(5) & 4, (I.A | I.B) + 1)
try:
    @unique
    class U(Enum):
        A = 1
        B = 1
except ValueError as e:
    print(e)


class Planet(Enum):
    EARTH = (5.97e24, 6.37e6)
    MARS = (6.4e23, 3.4e6)

    def __init__(self, mass, radius):
        self.mass, self.radius = mass, radius

    @property
    def g(self):
        return round(6.67e-11 * self.mass / self.radius ** 2, 2)

    @classmethod
    def _missing_(cls, value):
        return cls.EARTH if value == "home" else None


print([(p.name, p.g) for p in Planet], Planet("home"))
Animal = Enum("Animal", "ANT BEE CAT")
print(list(Animal), Animal.BEE.value)


class WithConst(Enum):
    X = 1
    helper = nonmember(5)


print(list(WithConst), WithConst.helper)
try:
    class Sub(Color):
        pass
except TypeError as e:
    print(e)
match Color.RED:
    case Color.RED:
        print("matched", {Color.RED: 1}[Color(1)])
