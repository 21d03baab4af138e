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
