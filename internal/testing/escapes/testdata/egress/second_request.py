# sends a request for another host behind one for a listed host
# with: proxy
path = CANARY_PATH
print(send('GET http://allowed.example.com/ HTTP/1.1\r\nHost: allowed.example.com\r\n\r\n' f'GET {path} HTTP/1.1\r\nHost: other.example.com\r\nConnection: close\r\n\r\n'))
