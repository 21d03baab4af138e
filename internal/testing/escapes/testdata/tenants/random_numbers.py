# predicts the random numbers of another tenant
# before: import random; random.seed(7)
import random
print(random.getrandbits(128))
# in another sandbox
import random
print(CANARY_PROOF if random.getrandbits(128) == int(CANARY_SAID) else 0)
