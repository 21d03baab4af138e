# asks for a host that is not listed
# with: proxy
path = CANARY_PATH
print(send(f'GET http://other.example.com{path} HTTP/1.1\r\nHost: other.example.com\r\nConnection: close\r\n\r\n'))
