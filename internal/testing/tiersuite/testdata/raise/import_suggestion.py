# A misspelt name of a built-in module.
from sys import exitt
