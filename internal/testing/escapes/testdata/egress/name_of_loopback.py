# asks for a listed name whose address is loopback
# with: proxy
path = CANARY_PATH
print(send(f'GET http://loopback.example.com{path} HTTP/1.1\r\nHost: loopback.example.com\r\nConnection: close\r\n\r\n'))
