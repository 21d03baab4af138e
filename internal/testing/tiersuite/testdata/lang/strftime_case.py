# The formats of dates, as Linux has them.
import time
from datetime import date, datetime, time as clock

for year in (1, 32, 476, 999, 1000, 1582, 1969, 2024, 9999):
    day = date(year, 3, 9)
    print([day.strftime(f) for f in ("%Y", "%G", "%C", "%y", "%F", "%D", "%c", "%x", "%Y%m%d", "%d.%m.%Y")])
    print(f"{day:%Y-%m}", format(datetime(year, 12, 31, 23, 5, 6, 789), "%j %U %W %V %u %w %f %Y"))

moment = datetime(33, 4, 3, 15, 4, 5)
for f in ("%k|%l|%P|%p|%I|%H", "%e|%h|%b|%B|%a|%A", "%-d|%-m|%_d|%03d|%5Y|%04Y|%-I", "%^a|%#b|%^B|%#p|%10A",
          "%R|%T|%r|%X", "%n%t%%", "%EY|%Ey|%Od|%Om", "100 %|%Q|%J", ""):
    print(repr(moment.strftime(f)))
print(clock(7, 8, 9).strftime("%H:%M:%S %l %k"), time.strftime("%Y-%j", (5, 1, 1, 0, 0, 0, 0, 1, 0)))
for bad in ((1, 13, 1, 0, 0, 0, 0, 1, 0), (1, 1, 1, 25, 0, 0, 0, 1, 0), (1, 2)):
    try:
        print(time.strftime("%Y", bad))
    except (ValueError, TypeError) as e:
        print(type(e).__name__, e)
for y in (1, 999, 2024):
    print(datetime.strptime(date(y, 2, 3).strftime("%d/%m/") + f"{y:04}", "%d/%m/%Y").year)
