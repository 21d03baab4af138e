# asks for the address of a listed host
# with: proxy
path = CANARY_PATH
print(send(f'GET http://93.184.216.34{path} HTTP/1.1\r\nHost: 93.184.216.34\r\nConnection: close\r\n\r\n'))
