# asks for a listed name whose address changes to one inside
# with: proxy
path = CANARY_PATH
for _ in range(6): print(send(f'GET http://rebinding.example.com{path} HTTP/1.1\r\nHost: rebinding.example.com\r\nConnection: close\r\n\r\n'))
