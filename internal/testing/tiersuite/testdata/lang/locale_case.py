# A system has the locale C under two names, and says so if it lacks another.
import locale

for name in ("xx_YY.NOPE", "C.NOPE", "nonsense", "C/x", "C;nonsense", ("xx", "UTF-8")):
    try:
        locale.setlocale(locale.LC_ALL, name)
        print(name, "set")
    except locale.Error as e:
        print(name, e)
for name in ("C", "POSIX"):
    print(locale.setlocale(locale.LC_ALL, name), locale.setlocale(locale.LC_NUMERIC, name))
before = locale.setlocale(locale.LC_ALL)
try:
    locale.setlocale(locale.LC_TIME, "de_XX.NOPE")
except locale.Error:
    print(locale.setlocale(locale.LC_ALL) == before, locale.setlocale(locale.LC_ALL, before) == before)
print(locale.localeconv()["decimal_point"], locale.format_string("%d", 1234567, grouping=True))
