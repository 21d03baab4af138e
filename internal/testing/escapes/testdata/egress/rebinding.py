# asks for a listed name whose address changes to one inside
import os, socket
port = int(os.environ.get('http_proxy', 'http://127.0.0.1:8080').rstrip('/').rsplit(':', 1)[1])
def send(*texts):
    s, said = socket.create_connection(('127.0.0.1', port), 5), b''
    s.settimeout(2)
    for text in texts:
        s.sendall(text.encode())
        try: said += s.recv(9999)
        except OSError: pass
    try:
        while part := s.recv(9999): said += part
    except OSError: pass
    return said.decode(errors='replace')
path = CANARY_PATH
for _ in range(6): print(send(f'GET http://rebinding.example.com{path} HTTP/1.1\r\nHost: rebinding.example.com\r\nConnection: close\r\n\r\n'))
