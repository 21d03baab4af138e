# asks for a listed name whose address is inside
# with: proxy
path = CANARY_PATH
print(send(f'GET http://inside.example.com{path} HTTP/1.1\r\nHost: inside.example.com\r\nConnection: close\r\n\r\n'))
