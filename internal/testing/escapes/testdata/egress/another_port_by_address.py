# asks for another port of a listed host
# with: proxy
path = CANARY_PATH
print(send(f'GET http://allowed.example.com:8080{path} HTTP/1.1\r\nHost: allowed.example.com:8080\r\nConnection: close\r\n\r\n'))
