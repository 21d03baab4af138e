# puts a million accents of one letter in order
# harm: hangs
import unicodedata
unicodedata.normalize('NFD', 'a' + '\u0301\u0316' * 1_000_000)
