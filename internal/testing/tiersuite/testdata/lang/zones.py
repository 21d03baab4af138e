import pickle
import zoneinfo
from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

berlin = ZoneInfo("Europe/Berlin")
for month in (1, 7):
    there = datetime(2024, month, 1, 12, tzinfo=berlin)
    print(there.isoformat(), there.tzname(), there.utcoffset(), there.dst())

# The hour that comes twice, and the one that does not exist.
for fold in (0, 1):
    print(datetime(2024, 10, 27, 2, 30, tzinfo=berlin, fold=fold).astimezone(timezone.utc))
print((datetime(2024, 3, 31, 0, 30, tzinfo=timezone.utc) + timedelta(hours=1)).astimezone(berlin))

for name in ("America/New_York", "Asia/Kolkata", "Pacific/Chatham", "America/Argentina/Buenos_Aires", "UTC", "Etc/GMT+5"):
    print(name, datetime(2024, 7, 1, tzinfo=timezone.utc).astimezone(ZoneInfo(name)).strftime("%H:%M %z %Z"))

names = zoneinfo.available_timezones()
print(len(names) > 400, {"Europe/Berlin", "UTC", "Asia/Tokyo"} <= names, "zones" in names, "Europe" in names)
print(ZoneInfo("Europe/Berlin") is berlin, str(berlin), repr(berlin), berlin.key)
print(pickle.loads(pickle.dumps(berlin)) is berlin)

for name in ("Mars/Base", "Europe", "Europe/", "../Europe/Berlin", "/etc/localtime", "Europe/../../etc/passwd", "Europe/Berlin\0", "a.b/c", "é", "x" * 1000, ""):
    try:
        ZoneInfo(name)
        print("found", repr(name))
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        print("no zone", repr(name[:20]))
