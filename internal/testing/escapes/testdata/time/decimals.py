# computes e with a million digits
# harm: hangs
import decimal
decimal.getcontext().prec = 3_000_000
decimal.Decimal(1).exp()
