# calendar, uuid with fixed inputs, ipaddress, colorsys, numbers.
import calendar
import colorsys
import ipaddress
import numbers
import uuid

print(calendar.month(2024, 2), calendar.monthrange(2024, 2), calendar.isleap(1900), calendar.leapdays(2000, 2025), calendar.weekday(2024, 1, 1), calendar.monthcalendar(2023, 2), calendar.timegm((2024, 1, 1, 0, 0, 0)), list(calendar.day_abbr), calendar.month_name[3])
c = calendar.Calendar(firstweekday=6)
print(list(c.itermonthdays(2024, 2))[:10], [d.isoformat() for d in c.itermonthdates(2024, 2)][-1], calendar.TextCalendar(6).formatmonth(2023, 5), calendar.Month.MAY, calendar.Day.SUNDAY.value)
try:
    calendar.monthrange(2024, 13)
except calendar.IllegalMonthError as e:
    print(e)
u = uuid.uuid5(uuid.NAMESPACE_DNS, "example.org")
print(u, uuid.uuid3(uuid.NAMESPACE_URL, "x"), u.hex, u.version, u.variant, u.int, uuid.UUID(hex=u.hex) == u, u.urn, uuid.UUID(int=5), sorted([u, uuid.UUID(int=1)])[0].int, repr(uuid.UUID(int=0)), u.fields[0], u.bytes.hex())
a, b = uuid.uuid4(), uuid.uuid4()
print(a != b, a.version, len(str(a)))
try:
    uuid.UUID("nope")
except ValueError as e:
    print(e)
n = ipaddress.ip_network("192.168.0.0/29")
print(n.num_addresses, [str(h) for h in n.hosts()], ipaddress.ip_address("192.168.0.3") in n, ipaddress.ip_address("::1").is_loopback, n.broadcast_address, ipaddress.ip_address("2001:db8::1").exploded, list(map(str, n.subnets(1))), ipaddress.ip_address("10.0.0.1").is_private, int(ipaddress.ip_address("1.2.3.4")))
for bad in ("300.1.1.1", "192.168.0.1/24"):
    try:
        ipaddress.ip_network(bad)
    except ValueError as e:
        print(e)
print([round(v, 6) for v in colorsys.rgb_to_hsv(0.2, 0.4, 0.6)], isinstance(1, numbers.Integral), isinstance(1.5, numbers.Rational), isinstance(1j, numbers.Complex))
