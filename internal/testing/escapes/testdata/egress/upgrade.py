# asks for another host after an upgrade of the connection
# with: proxy
path = CANARY_PATH
print(send('GET http://allowed.example.com/ HTTP/1.1\r\nHost: allowed.example.com\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n', f'GET {path} HTTP/1.1\r\nHost: other.example.com\r\nConnection: close\r\n\r\n'))
