# asks for another host in a tunnel to a listed one
# with: proxy
path = CANARY_PATH
print(send('CONNECT allowed.example.com:80 HTTP/1.1\r\nHost: allowed.example.com:80\r\n\r\n', f'GET {path} HTTP/1.1\r\nHost: other.example.com\r\nConnection: close\r\n\r\n'))
