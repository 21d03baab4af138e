# follows a redirection to a host that is not listed
import urllib.request
print(urllib.request.urlopen('http://allowed.example.com/?to=http://other.example.com' + CANARY_PATH, timeout=5).read().decode())
