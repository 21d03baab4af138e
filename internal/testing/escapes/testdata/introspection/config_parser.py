# reads a file through the error message of configparser
import configparser
c = configparser.ConfigParser()
try:
    with open(CANARY_FILE) as f: c.read_file(f)
except configparser.Error as e: print(e)
