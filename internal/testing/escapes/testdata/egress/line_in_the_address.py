# breaks the line of the request in its address
# with: proxy
path = CANARY_PATH
print(send(f'GET http://allowed.example.com{path}\tHTTP/1.1\r\nHost: other.example.com\r\nConnection: close\r\n\r\n'))
