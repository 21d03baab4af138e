# asks for a listed name whose address is the metadata server of a cloud
# with: proxy
path = CANARY_PATH
print(send(f'GET http://metadata.example.com{path} HTTP/1.1\r\nHost: metadata.example.com\r\nConnection: close\r\n\r\n'))
