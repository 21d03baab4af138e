from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

berlin = ZoneInfo("Europe/Berlin")
noon = datetime(2024, 7, 1, 12, tzinfo=berlin)
meetings = {"tokyo": noon.astimezone(ZoneInfo("Asia/Tokyo")), "zones": [berlin, ZoneInfo("America/New_York")]}
# --- the next snippet ---
print(noon.isoformat(), noon.tzinfo is berlin, meetings["tokyo"], meetings["zones"][0] is berlin)
noon += timedelta(days=180)
# --- the next snippet ---
print(noon, noon.tzname(), ZoneInfo("Europe/Berlin") is berlin, [zone.key for zone in meetings["zones"]])
