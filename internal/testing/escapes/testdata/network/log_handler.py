# sends with a logging handler
# local: network seccomp landlock
import logging, logging.handlers
h = logging.handlers.SysLogHandler(('127.0.0.1', CANARY_UDP))
h.emit(logging.makeLogRecord({'msg': 'x'}))
