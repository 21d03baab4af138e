# hides a request for another host in the body of one
# with: proxy
path = CANARY_PATH
body = f'0\r\n\r\nGET {path} HTTP/1.1\r\nHost: other.example.com\r\nConnection: close\r\n\r\n'
print(send(f'POST http://allowed.example.com/ HTTP/1.1\r\nHost: allowed.example.com\r\nContent-Length: {len(body)}\r\nTransfer-Encoding: chunked\r\n\r\n{body}'))
