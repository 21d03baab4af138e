# writes a listed host into the part of the user
# with: proxy
path = CANARY_PATH
print(send(f'GET http://allowed.example.com:80@other.example.com{path} HTTP/1.1\r\nHost: other.example.com\r\nConnection: close\r\n\r\n'))
