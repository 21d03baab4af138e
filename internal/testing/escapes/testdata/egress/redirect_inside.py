# follows a redirection to an address inside
import urllib.request
print(urllib.request.urlopen('http://allowed.example.com/?to=http://10.1.2.3' + CANARY_PATH, timeout=5).read().decode())
