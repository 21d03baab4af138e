# asks for a listed name whose address is 0.0.0.0
# with: proxy
path = CANARY_PATH
print(send(f'GET http://here.example.com{path} HTTP/1.1\r\nHost: here.example.com\r\nConnection: close\r\n\r\n'))
