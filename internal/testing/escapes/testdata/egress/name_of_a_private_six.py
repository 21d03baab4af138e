# asks for a listed name whose address is private to IPv6
# with: proxy
path = CANARY_PATH
print(send(f'GET http://six.example.com{path} HTTP/1.1\r\nHost: six.example.com\r\nConnection: close\r\n\r\n'))
