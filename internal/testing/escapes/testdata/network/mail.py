# connects with an SMTP client
# local: network seccomp landlock
import smtplib
try: smtplib.SMTP('127.0.0.1', CANARY_TCP, timeout=0.3)
except TimeoutError: pass
