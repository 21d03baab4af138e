# opens a tunnel to another port of a listed host
# with: proxy
path = CANARY_PATH
print(send('CONNECT allowed.example.com:22 HTTP/1.1\r\nHost: allowed.example.com:22\r\n\r\n', f'GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'))
