"""The default conf: data, shipped with the code so that `importlib.resources.files("conf")` finds it in every kind of install."""
