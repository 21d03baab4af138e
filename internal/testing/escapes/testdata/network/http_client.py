# fetches with http.client
# local: network seccomp landlock
import http.client
c = http.client.HTTPConnection('127.0.0.1', CANARY_TCP, timeout=0.3)
c.request('GET', '/')
