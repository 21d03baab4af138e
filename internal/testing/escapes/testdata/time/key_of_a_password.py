# derives a key in a billion rounds
# harm: hangs
import hashlib
hashlib.pbkdf2_hmac('sha256', b'password', b'salt', 1_000_000_000)
