# asks for a listed name whose address is mapped to IPv6
# with: proxy
path = CANARY_PATH
print(send(f'GET http://mapped.example.com{path} HTTP/1.1\r\nHost: mapped.example.com\r\nConnection: close\r\n\r\n'))
