# asks for an IPv4 address in the form of IPv6
# with: proxy
path = CANARY_PATH
print(send(f'GET http://[::ffff:10.1.2.3]{path} HTTP/1.1\r\nHost: [::ffff:10.1.2.3]\r\nConnection: close\r\n\r\n'))
