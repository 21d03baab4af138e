# raise … from …
class ConfigError(Exception):
    pass


def load(text):
    try:
        return int(text)
    except ValueError as e:
        raise ConfigError(f"cannot load {text!r}") from e


load("seven")
