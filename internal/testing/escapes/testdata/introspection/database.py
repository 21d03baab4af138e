# writes a database file
import sqlite3
c = sqlite3.connect(CANARY_OPEN + '/db')
c.execute('create table t (x)')
c.commit()
