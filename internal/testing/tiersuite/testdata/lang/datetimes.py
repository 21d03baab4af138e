# datetime with fixed times and fixed offsets.
from datetime import MAXYEAR, UTC, date, datetime, time, timedelta, timezone

d = datetime(2024, 2, 29, 23, 59, 58, 123456, tzinfo=UTC)
print(d, repr(d), d.isoformat(), d.isoformat(" ", "minutes"), d.date(), d.time(), d.timetz(), d.timestamp(), d.weekday(), d.isocalendar(), d.timetuple().tm_yday)
print(d + timedelta(seconds=2), d - timedelta(days=366), d.replace(year=2023, day=28), (d - datetime(2000, 1, 1, tzinfo=UTC)), d.toordinal(), d.utcoffset(), d.tzname(), d.dst())
print(d.strftime("%Y-%m-%d %H:%M:%S.%f %z %Z %a %A %b %B %j %U %W %p %I %y %%"), f"{d:%d/%m/%y}", d.ctime())
print(datetime.strptime("2024-03-10 08:05 +0530", "%Y-%m-%d %H:%M %z"), datetime.strptime("Jan 5 99 1:02:03 PM", "%b %d %y %I:%M:%S %p"), datetime.fromisoformat("2024-01-02T03:04:05.678+02:00"), datetime.fromisoformat("20240102T030405Z"), date.fromisoformat("2024-W05-3"))
tz = timezone(timedelta(hours=5, minutes=30), "IST")
print(d.astimezone(tz), tz, repr(tz), timezone(timedelta(hours=-3)), d.astimezone(tz) == d, datetime(2024, 1, 1, tzinfo=tz) < d, timezone.utc)
print(datetime.fromtimestamp(0, UTC), datetime.fromtimestamp(1709251198.5, tz), datetime.fromtimestamp(-1, UTC), datetime.min, datetime.max.year == MAXYEAR)
t = timedelta(days=1, hours=-2, minutes=3, milliseconds=4)
print(t, repr(t), t.days, t.seconds, t.microseconds, t.total_seconds(), -t, abs(-t), t * 2, t / 2, t // timedelta(hours=1), t % timedelta(hours=1), divmod(t, timedelta(hours=5)), t > timedelta(), timedelta.max, timedelta(weeks=1) == timedelta(7), str(timedelta(-1)))
x = date(2024, 12, 30)
print(x, x.isocalendar(), x.isoweekday(), x - date(2024, 1, 1), x.replace(day=1), date.fromordinal(738886), date(2024, 3, 1) - timedelta(1), date(2023, 3, 1) - timedelta(1), sorted([date(2024, 1, 2), date(2023, 1, 1)]), hash(x) == hash(date(2024, 12, 30)), date.fromisocalendar(2025, 1, 1), x.strftime("%G-W%V-%u"))
print(time(12, 30), time(1, 2, 3, 4).isoformat(), time.fromisoformat("04:05:06"), time(5) < time(6), time(12, 30, tzinfo=UTC), time.min, time.max, bool(time(0)), datetime.combine(x, time(1)))
for bad in (lambda: date(2023, 2, 29), lambda: datetime(1, 1, 1) - timedelta(1), lambda: time(25), lambda: datetime.fromisoformat("nope"), lambda: datetime.strptime("1", "%Y-%m"), lambda: d < datetime(2024, 1, 1), lambda: d - datetime(2024, 1, 1), lambda: timezone(timedelta(hours=24)), lambda: timedelta(days=10 ** 10), lambda: date(0, 1, 1), lambda: d + 5, lambda: datetime.strptime("2024-13-01", "%Y-%m-%d")):
    try:
        print(bad())
    except (ValueError, OverflowError, TypeError) as e:
        print(type(e).__name__, e)
now = datetime.now(UTC)
assert now.tzinfo is UTC and now.year >= 2000 and date.today().year >= 2000 and datetime.now() <= datetime.now()
print(datetime(2024, 11, 3, 1, 30, fold=1).fold, d.__reduce__()[0].__name__, [datetime(2024, m, 1).strftime("%b") for m in range(1, 13)])
months, y, m = [], 2023, 11
for _ in range(4):
    months.append(f"{y}-{m:02}")
    y, m = (y + 1, 1) if m == 12 else (y, m + 1)
print(months, [(date(2024, 1, 31) + timedelta(days=30 * i)).isoformat() for i in range(3)])
