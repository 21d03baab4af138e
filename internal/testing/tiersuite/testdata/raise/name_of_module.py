# A standard module that was not imported is suggested.
value = fractions.Fraction(1, 3)
