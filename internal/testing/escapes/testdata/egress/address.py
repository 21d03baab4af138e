# asks for an address
# with: proxy
path = CANARY_PATH
print(send(f'GET http://10.1.2.3{path} HTTP/1.1\r\nHost: 10.1.2.3\r\nConnection: close\r\n\r\n'))
