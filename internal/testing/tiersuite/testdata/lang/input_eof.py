# Standard input is empty.
import sys

try:
    input()
except EOFError as e:
    print("input:", e)
try:
    input("prompt> ")
except EOFError as e:
    print("again:", e)
print(repr(sys.stdin.read()), repr(sys.stdin.readline()), list(sys.stdin), sys.stdin.isatty(), sys.stdout.isatty())
try:
    value = int(input())
except EOFError:
    value = "nothing to read"
print(value)
