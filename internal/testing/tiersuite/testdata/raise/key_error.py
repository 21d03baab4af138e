# A KeyError shows the repr of its key.
data = {"users": [{"name": "Zoë"}]}
name = data["users"][0]["näme with 'quotes'"]
