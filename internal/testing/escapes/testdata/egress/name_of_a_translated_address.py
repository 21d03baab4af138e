# asks for a listed name whose address is translated to IPv6
# with: proxy
path = CANARY_PATH
print(send(f'GET http://translated.example.com{path} HTTP/1.1\r\nHost: translated.example.com\r\nConnection: close\r\n\r\n'))
