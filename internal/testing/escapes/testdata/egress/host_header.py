# asks a listed host for the page of another by the header Host
# with: proxy
path = CANARY_PATH
print(send(f'GET http://allowed.example.com{path} HTTP/1.1\r\nHost: other.example.com\r\nConnection: close\r\n\r\n'))
