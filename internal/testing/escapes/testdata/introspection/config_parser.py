# reads by the error of a parser of settings
import configparser
c = configparser.ConfigParser()
try:
    with open(CANARY_FILE) as f: c.read_file(f)
except configparser.Error as e: print(e)
